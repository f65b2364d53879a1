"""Why a topic is not in a listing: the step that takes it away is the one that does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_core import Access, Refused
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.plugins import PluginOf


async def why(served: ApiServed, topic: str, **question: Any) -> Any:
    said = await served.ask(f"{NAMESPACE}/topics/{topic}:why", "POST", json=question)
    assert said.status == 200, said.json
    return said.json


@pytest.mark.parametrize(
    ("topic", "question", "blocked_by", "says"),
    [
        ("bills", {}, None, None),
        ("bills", {"pattern": "public/default/b.*", "properties": {"region": "us"}}, None, None),
        ("orders-partition-1", {}, None, None),
        ("bill", {}, "exists", "there is no topic persistent://public/default/bill"),
        (
            "orders-partition-2",
            {},
            "exists",
            "orders has no partition 2: it has 2 partitions, counted from 0",
        ),
        (
            "ticks",
            {"mode": "all"},
            "exists",
            "there is no topic persistent://public/default/ticks, but non-persistent://public/default/ticks is there",
        ),
        ("bills-partition-0", {}, "exists", "bills has no partition 0: it is not partitioned"),
        ("bills", {"pattern": "public/default/o.*"}, "pattern", "it does not match public/default/bills"),
        ("bills", {"mode": "non_persistent"}, "mode", "the mode non_persistent has no persistent topics"),
        (
            "bills",
            {"properties": {"region": "eu", "color": "red"}},
            "properties",
            "region=eu is asked, and the topic has region=us; nothing selects by color",
        ),
    ],
)
async def test_the_step_that_takes_a_topic_away(
    served: ApiServed, topic: str, question: Any, blocked_by: str | None, says: str | None
) -> None:
    found = await why(served, topic, **question)
    assert (found["blocked_by"], found["listed"]) == (blocked_by, blocked_by is None)
    if blocked_by is None:
        assert all(each["passes"] for each in found["steps"])
        assert found["steps"][-1]["step"] == "listing"
    else:
        step = next(each for each in found["steps"] if each["step"] == blocked_by)
        assert (step["passes"], step["says"]) == (False, says)
        assert step["needs"]


async def test_a_topic_that_is_not_there_needs_the_properties_that_select(served: ApiServed) -> None:
    found = await why(served, "bill", properties={"region": "eu", "color": "red"})
    assert found["steps"][1]["needs"] == "the topic must be made, with region=eu"
    assert (await why(served, "orders-partition-1"))["topic"].endswith("/orders-partition-1")


async def test_plugins_that_hide_or_refuse_are_named(tmp_path: Path) -> None:
    def visible(topics: Any) -> pa.BooleanArray:
        return pa.array(["bills" not in name for name in topics.to_pylist()])

    async with api_served(tmp_path, plugins={"mask": PluginOf(visible=visible)}) as served:
        found = await why(served, "bills")
        assert (found["blocked_by"], found["steps"][-1]["by"]) == ("masks", "mask")
        assert (await why(served, "orders"))["listed"] is True

    def gate(access: Access) -> Refused | None:
        return Refused("closed") if access.action == "list" else None

    (tmp_path / "gate").mkdir()
    async with api_served(tmp_path / "gate", plugins={"gate": PluginOf(authorize=gate)}) as served:
        found = await why(served, "bills")
        assert (found["blocked_by"], found["listed"]) == ("gates", None)
        assert found["steps"][0]["says"] == "closed"


async def test_a_pattern_that_the_client_applies_is_not_decided(served: ApiServed) -> None:
    found = await why(served, "bills", pattern="public/default/(?!x).*")
    step = next(each for each in found["steps"] if each["step"] == "pattern")
    assert (step["passes"], found["listed"]) == (None, True)


async def test_a_held_listing_says_so(tmp_path: Path) -> None:
    guard = {"enabled": True, "max_ratio": 0.5, "min_topics": 2}
    topics: dict[str, tuple[int, dict[str, str]]] = {
        f"persistent://public/default/t{number}": (0, {}) for number in range(20)
    }
    names = [*topics]

    def lists() -> Any:
        from broker_core import TopicListingResult

        return TopicListingResult.success(list(names))

    async with api_served(
        tmp_path, topics={}, plugins={"p": PluginOf(list_topics=lists)}, shrink_guard=guard
    ) as served:
        assert (await why(served, "t1"))["listed"] is True
        del names[3:]
        found = await why(served, "t1")
        assert (found["listed"], found["blocked_by"]) == (None, "held")
