"""Warnings about questions that select otherwise than they seem."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
from pydantic import BaseModel
from structlog.testing import capture_logs

from broker_core import ListingRequest, TopicListingResult
from broker_core.access.asker import Asker
from broker_core.pipeline import PipelineOptions
from broker_core.pipeline.answer import ReusableAnswer
from broker_core.settings import PatternsSettings
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, Made, made, request
from tests.support.plugins import PluginOf


async def warned(m: Made, **fields: Any) -> list[tuple[str, str]]:
    answer = await m.ask(**fields)
    answer.release()
    return [(warning.kind, warning.text) for warning in answer.warnings]


async def kinds(m: Made, **fields: Any) -> list[str]:
    return [kind for kind, _ in await warned(m, **fields)]


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_pattern_without_its_namespace_is_told_counted_and_logged(at_once: bool) -> None:
    async with made(MemoryLister(FEW, at_once=at_once)) as m:
        with capture_logs() as logs:
            ((kind, text),) = await warned(m, pattern="0-.*", asker=Asker(role="r", remote_address="a:1"))
        assert (kind, "'t/n/0-.*'" in text) == ("pattern", True)
        (line,) = logs
        assert (line["event"], line["reason"]) == ("a question selects otherwise than it seems", "pattern")
        assert (line["role"], line["peer"], line["namespace"]) == ("r", "a:1", "t/n")
        assert line["warning"] == text
        assert await kinds(m, pattern="t/n/none-.*") == []
        assert await kinds(m, pattern="t/n/0-.*") == []
        assert m.sample("listing_warnings_total", kind="pattern") == 1
        assert m.sample("listing_warnings_total", kind="properties") == 0


async def test_an_answer_that_is_given_again_is_counted_again() -> None:
    async with made(MemoryLister(FEW)) as m:
        question = request(pattern="0-.*")
        answer = m.pipeline.answer_now(question)
        assert answer is not None
        reusable = ReusableAnswer.of(question, answer)
        assert reusable is not None
        answer.release()
        assert m.again(reusable, role="r")
        assert m.sample("listing_warnings_total", kind="pattern") == 2


def lister(depends_on: Collection[str] | None) -> PluginOf:
    def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.pass_through()

    hooks: dict[str, Callable[..., Any]] = {"list_topics": broker_core_list_topics}
    if depends_on is not None:
        hooks["depends_on"] = lambda: depends_on
    return PluginOf(**hooks)


@pytest.mark.parametrize(
    ("declared", "unread"),
    [
        ("none", ["a", "b"]),
        (None, []),  # it may read any
        (["properties"], []),
        (["pattern", "property:b"], ["a"]),
        (["principal"], ["a", "b"]),
    ],
)
async def test_properties_that_nothing_selects_by(declared: Any, unread: list[str]) -> None:
    source = MemoryLister(FEW)
    source.depends_on = frozenset({"property:region"})
    plugins = {} if declared == "none" else {"p": lister(declared)}
    async with made(source, plugins) as m:
        found = await warned(m, properties={"region": "eu", "a": "1", "b": "2"})
        if not unread:
            assert found == []
            return
        ((kind, text),) = found
        assert kind == "properties"
        assert f"by the property {', '.join(map(repr, unread))}: " in text
        assert m.sample("listing_warnings_total", kind="properties") == 1


async def test_a_plugin_selects_by_its_setting_property_keys() -> None:
    class Settings(BaseModel):
        property_keys: tuple[str, ...] = ("b",)

    def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.pass_through()

    hooks: dict[str, Any] = {"list_topics": broker_core_list_topics, "settings": lambda: Settings}
    declares = PluginOf(**hooks, depends_on=lambda: ["pattern", "properties"])
    async with made(MemoryLister(FEW), {"p": declares}) as m:
        ((_, text),) = await warned(m, properties={"a": "1", "b": "2"})
        assert "by the property 'a': " in text
    async with made(MemoryLister(FEW), {"p": PluginOf(**hooks)}) as m:  # it may read any
        assert await kinds(m, properties={"a": "1", "b": "2"}) == []


async def test_many_long_names_are_named_in_part() -> None:
    async with made(MemoryLister(FEW)) as m:
        ((_, text),) = await warned(m, properties={f"{number}{'x' * 1000}\n": "" for number in range(9)})
        assert len(text) < 500
        assert " and 4 more: " in text


async def test_a_mask_may_select_by_properties() -> None:
    def broker_core_visible(request: ListingRequest, topics: Any) -> None: ...

    mask = PluginOf(visible=broker_core_visible, depends_on=lambda: ["property:team"])
    async with made(MemoryLister(FEW), {"p": mask}) as m:
        assert await kinds(m, properties={"team": "a"}) == []
        assert await kinds(m, properties={"tear": "a"}) == ["properties"]


async def test_a_pattern_that_is_not_applied() -> None:
    async with made(MemoryLister(FEW)) as m:
        ((kind, text),) = await warned(m, pattern="t/n/(?=0).*")
        assert (kind, "RE2 refuses it" in text) == ("unfiltered", True)
        # That is what the plan of a listing is counted by.
        assert m.sample("listing_requests_total", outcome="served", plan="unsupported") == 1
    async with made(MemoryLister(FEW), options=PipelineOptions(PatternsSettings(evaluate=False))) as m:
        assert await kinds(m, pattern="t/n/0.*") == ["unfiltered"]
        assert await kinds(m, pattern="0.*") == ["pattern", "unfiltered"]
        ((_, text),) = await warned(m, pattern="t/n/.*x")
        assert "patterns.evaluate is false" in text


async def test_a_plugin_that_matches_in_its_own_way_is_believed() -> None:
    def broker_core_list_topics(request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.success(FEW, filtered=True)

    plugin = PluginOf(list_topics=broker_core_list_topics)
    tables = {"p": {"verify_filtered": "never"}}
    async with made(MemoryLister(FEW), {"p": plugin}, tables=tables) as m:
        assert await kinds(m, pattern="0-.*") == []
