"""Why a topic is not in a listing: the step that takes it away is the one that does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_core import Access, Mode, Refused, TopicListingResult
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
        assert found["topic"].endswith(f"/{topic}")
        assert all(each["passes"] for each in found["steps"])
        assert found["steps"][-1]["step"] == "listing"
    else:
        step = next(each for each in found["steps"] if each["step"] == blocked_by)
        assert (step["passes"], step["says"]) == (False, says)
        assert step["needs"]


def changes_of(found: Any) -> list[Any]:
    return [each["change"] for each in found["steps"] if each["change"] is not None]


@pytest.mark.parametrize(
    ("topic", "question", "requests", "needs"),
    [
        ("bill", {}, ["PUT"], "the topic must be made"),
        ("bill", {"properties": {"region": "eu", "color": "red"}}, ["PUT"], "must be made, with region=eu"),
        (
            "bill-partition-2",
            {"properties": {"region": "eu"}},
            ["PUT"],
            "the topic must be made, with 3 partitions and region=eu",
        ),
        (
            "non-persistent%3A%2F%2Fpublic%2Fdefault%2Ftocks",
            {"mode": "all"},
            ["PUT"],
            "the topic must be made",
        ),
        ("bills", {"properties": {"region": "eu", "color": "red"}}, ["PATCH"], "the property region=eu"),
        (
            "orders-partition-4",
            {},
            ["PATCH"],
            "partition 4 must be made: the topic has 5 partitions then, and they only grow",
        ),
        (
            "orders-partition-4",
            {"properties": {"region": "us"}},
            ["PATCH", "PATCH"],
            "partition 4 must be made",
        ),
        ("caf%C3%A9 %25", {}, ["PUT"], "the topic must be made"),
        ("-" * 1018, {}, ["PUT"], "the topic must be made"),  # twice as long as a pattern
    ],
)
async def test_the_change_of_a_step_lets_the_topic_pass(
    served: ApiServed, topic: str, question: Any, requests: list[str], needs: str
) -> None:
    found = await why(served, topic, **question)
    changes = changes_of(found)
    assert [each["method"] for each in changes] == requests
    assert needs in next(each["needs"] for each in found["steps"] if each["change"])
    for each in changes:
        said = await served.ask(each["path"], each["method"], json=each["body"])
        assert said.status in {200, 201}, said.json
    after = await why(served, topic, **question)
    assert (after["listed"], changes_of(after)) == (True, [])


async def test_a_partition_that_was_deleted_comes_back(served: ApiServed) -> None:
    assert (await served.ask(f"{NAMESPACE}/topics/orders-partition-0", "DELETE")).status == 204
    (change,) = changes_of(await why(served, "orders-partition-0"))
    assert change["body"] == {"partitions": 2}
    assert (await served.ask(change["path"], change["method"], json=change["body"])).status == 200
    assert (await why(served, "orders-partition-0"))["listed"] is True


@pytest.mark.parametrize(
    ("topic", "question", "needs"),
    [
        ("bill", {"mode": "non_persistent"}, "non-persistent://public/default/bill is another topic"),
        ("bill", {"pattern": "public/default/o.*"}, "a pattern that matches"),
        ("%20bill", {}, "the topic must be made"),
        ("ticks", {"mode": "all"}, "its full name, non-persistent://public/default/ticks"),
        ("bills-partition-0", {}, "the name bills"),
        ("orders-partition-1000000", {}, "the name orders: a topic has at most 1000000 partitions"),
        ("bill-partition-1000000", {}, "another name: a topic has at most 1000000 partitions"),
        ("bill-partition-1-partition-2", {}, "another name: bill-partition-1 is the name of a partition"),
        (
            "bills",
            {"pattern": "public/default/o.*", "properties": {"region": "eu"}},
            "the property region=eu",
        ),
    ],
)
async def test_no_change_is_said_that_does_not_get_the_topic_listed(
    served: ApiServed, topic: str, question: Any, needs: str
) -> None:
    found = await why(served, topic, **question)
    assert (found["listed"], changes_of(found)) == (False, [])
    assert any(needs in (each["needs"] or "") for each in found["steps"])


async def test_no_change_is_said_that_the_server_does_not_take_or_a_plugin_decides(tmp_path: Path) -> None:
    async with api_served(tmp_path, http={"writes": False}) as served:
        assert changes_of(await why(served, "bill")) == []

    def lists() -> TopicListingResult:
        return TopicListingResult.success(["persistent://public/default/of-plugin"])

    (tmp_path / "plugin").mkdir()
    async with api_served(tmp_path / "plugin", plugins={"p": PluginOf(list_topics=lists)}) as served:
        found = await why(served, "bill")
        assert (found["listed"], changes_of(found)) == (False, [])


async def test_plugins_that_hide_or_refuse_are_named(tmp_path: Path) -> None:
    def visible(topics: Any) -> pa.BooleanArray:
        return pa.array(["bills" not in name for name in topics.to_pylist()])

    async with api_served(tmp_path, plugins={"mask": PluginOf(visible=visible)}) as served:
        found = await why(served, "bills")
        assert (found["blocked_by"], found["steps"][-1]["by"]) == ("masks", "mask")
        assert (await why(served, "orders"))["listed"] is True
        missing = await why(served, "no-bills")
        assert (missing["blocked_by"], missing["steps"][-1]["step"]) == ("exists", "masks")
        assert changes_of(missing) == []  # it would be hidden
        assert len(changes_of(await why(served, "bill"))) == 1
    (tmp_path / "two").mkdir()
    masks = {"shows": PluginOf(visible=lambda topics: None), "hides": PluginOf(visible=visible)}
    async with api_served(tmp_path / "two", plugins=masks) as served:
        (hidden,), (shown,) = [
            [each for each in (await why(served, name))["steps"] if each["step"] == "masks"]
            for name in ("bills", "orders")
        ]
        assert (hidden["by"], hidden["needs"]) == ("hides", "hides must show it to this client")
        assert (shown["passes"], set(shown["by"].split(", "))) == (True, {"shows", "hides"})

    def gate(access: Access) -> Refused | None:
        if access.action == "list" and access.asker.role == "other":
            return Refused("closed")
        return Refused("not here") if access.topic is not None and access.topic.local == "bill" else None

    (tmp_path / "gate").mkdir()
    async with api_served(tmp_path / "gate", plugins={"gate": PluginOf(authorize=gate)}) as served:
        found = await why(served, "bills", **{"as": {"role": "other"}})
        assert (found["blocked_by"], found["listed"]) == ("gates", None)
        assert found["steps"][0]["says"] == "closed"
        assert len(changes_of(await why(served, "bill-2"))) == 1
        assert changes_of(await why(served, "bill")) == []  # the client may not make it


async def test_a_listing_that_fails_is_blocked_by_what_fails(tmp_path: Path) -> None:
    def visible(topics: Any) -> pa.BooleanArray:
        raise ValueError(f"no mask of {len(topics)} topics today")

    async with api_served(tmp_path, plugins={"mask": PluginOf(visible=visible)}) as served:
        found = await why(served, "bill")
        assert (found["blocked_by"], found["listed"], changes_of(found)) == ("masks", None, [])
        # of which masks are asked nothing, so that the listing works and the mask is not to blame
        found = await why(served, "bill", properties={"region": "nowhere"})
        assert (found["blocked_by"], found["listed"], changes_of(found)) == ("exists", False, [])

    def lists(mode: Mode) -> TopicListingResult:
        if mode is Mode.NON_PERSISTENT:
            raise ValueError("no such mode")
        return TopicListingResult.success(["persistent://public/default/of-plugin"])

    (tmp_path / "list").mkdir()
    async with api_served(tmp_path / "list", plugins={"p": PluginOf(list_topics=lists)}) as served:
        found = await why(served, "missing")  # whose name in the other domain is looked for too
        assert (found["blocked_by"], found["listed"]) == ("exists", False)
        assert "there is no topic" in found["steps"][1]["says"]

    def gate() -> None:
        raise ValueError("no gate today")

    (tmp_path / "gate").mkdir()
    async with api_served(tmp_path / "gate", plugins={"gate": PluginOf(list_topics=gate)}) as served:
        found = await why(served, "bill", pattern="public/default/o.*")
        assert (found["blocked_by"], found["listed"], changes_of(found)) == ("exists", None, [])


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

    def lists() -> TopicListingResult:
        return TopicListingResult.success(list(names))

    async with api_served(
        tmp_path, topics={}, plugins={"p": PluginOf(list_topics=lists)}, shrink_guard=guard
    ) as served:
        assert (await why(served, "t1"))["listed"] is True
        del names[3:]
        found = await why(served, "t1")
        assert (found["listed"], found["blocked_by"]) == (None, "held")
