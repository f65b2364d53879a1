"""The explanation of a listing as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc
import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed, ServerError
from broker_core.listing import Page
from broker_core.listing.listing_hash import topics_hash
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.pipeline import Pipeline, explain
from broker_core.plugins import Dispatcher, PluginRegistry
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made, request
from tests.support.plugins import PluginOf

NAMES = [f"persistent://t/n/{number % 3}-{number}" for number in range(9)]


async def explained(
    plugins: Mapping[str, object] | None = None,
    *,
    tables: Mapping[str, Mapping[str, object]] | None = None,
    error: Exception | None = None,
    pattern: str | None = None,
    listed: Sequence[str] = NAMES,
    names: int = 0,
    **fields: Any,
) -> dict[str, Any]:
    permits, lister = Permits(), MemoryLister(listed)
    lister.error = error
    dispatcher = Dispatcher(PluginRegistry.load(given=plugins or {}, tables=tables))
    pipeline = Pipeline(lister, dispatcher, permits, Metrics())
    compiled = None if pattern is None else compile_pattern(pattern)
    try:
        request = ListingRequest(NamespaceName("t", "n"), pattern=compiled, **fields)
        report = await explain(pipeline, request, names=names)
    finally:
        await dispatcher.shutdown()
        pipeline.close()
    assert permits.heap.acquired == 0
    json.dumps(report)  # plain values only
    return report


def chain(report: dict[str, Any]) -> list[tuple[str, str]]:
    assert all(step["ms"] >= 0 for step in report["chain"])
    return [(step["plugin"], step["answer"]) for step in report["chain"]]


async def test_without_plugins() -> None:
    report = await explained(pattern="persistent://t/n/1-.*", properties={"k": "v"}, mode=Mode.PERSISTENT)
    assert {key: report[key] for key in ("namespace", "mode", "topics_pattern", "properties")} == {
        "namespace": "t/n",
        "mode": "PERSISTENT",
        "topics_pattern": "persistent://t/n/1-.*",
        "properties": {"k": "v"},
    }
    assert report["pattern"] == {
        "text": "t/n/1-.*",
        "supported": True,
        "reason": None,
        "literal": None,
        "ranges": [["t/n/1-", "t/n/1-\\xff"]],
        "required": ["t/n/1-"],
    }
    assert (report["chain"], report["masks"], report["lister"], report["plan"]) == (
        [],
        [],
        "catalog",
        "range",
    )
    assert (report["listed"], report["visible"], report["topics"]) == (9, None, 3)
    assert (report["filtered"], report["changed"]) == (True, True)
    assert report["topics_hash"] == topics_hash(name for name in NAMES if "/1-" in name)
    assert report["bytes"] == 3 * (len(NAMES[0]) + 2)
    assert report["permits"]["held"] == 0
    assert report["ms"] > 0


async def test_names_are_shown_as_far_as_their_bytes_go() -> None:
    """Clients choose how long the names of their topics are, and an answer of a thousand waits for its reader."""
    long = [f"persistent://t/n/{number:03}{'x' * 20_000}" for number in range(100)]
    shown = (await explained(listed=long, names=1000))["names"]
    assert sum(map(len, shown)) <= 1024 * 1024 < sum(map(len, shown)) + len(long[0])
    assert set(shown) < set(long)
    assert len(set(shown)) == len(shown)
    many = [f"persistent://t/n/{number:03}" for number in range(120)]
    assert len(set((await explained(listed=many, names=110))["names"])) == 110
    first_page = (await explained(listed=long, names=1000, page=Page(limit=90)))["names"]
    assert first_page == shown


async def test_the_chain_and_the_masks() -> None:
    success = TopicListingResult.success

    async def broker_core_visible(topics: Any) -> Any:
        return pc.ends_with(topics, "1")

    plugins = {
        "elsewhere": PluginOf(list_topics=lambda: success([])),
        "fails": PluginOf(list_topics=lambda: 1 / 0),
        "passes": PluginOf(list_topics=lambda: None),
        "answers": PluginOf(list_topics=lambda: success(NAMES[:4])),
        "late": PluginOf(list_topics=lambda: None),
        "hides": PluginOf(visible=broker_core_visible),
    }
    tables: dict[str, dict[str, object]] = {
        "elsewhere": {"namespaces": ["other/*"]},
        "fails": {"on_failure": "next"},
    }
    report = await explained(plugins, tables=tables)
    assert chain(report) == [
        ("elsewhere", "not_asked"),
        ("fails", "error"),
        ("passes", "pass_through"),
        ("answers", "success"),
        ("late", "not_asked"),
    ]
    assert "ZeroDivisionError: division by zero" in report["chain"][1]["error"]
    assert [(step["plugin"], step["answer"]) for step in report["masks"]] == [("hides", "mask")]
    assert (report["lister"], report["plan"]) == ("answers", "none")
    assert (report["listed"], report["visible"], report["topics"]) == (4, 1, 1)


async def test_a_plugin_that_passes_says_why() -> None:
    plugins = {
        "silent": PluginOf(list_topics=lambda: TopicListingResult.pass_through(None)),
        "says": PluginOf(list_topics=lambda: TopicListingResult.pass_through("not\x07 mine" + "!" * 9999)),
    }
    report = await explained(plugins, tables={"says": {"on_failure": "stale"}})
    assert chain(report) == [("silent", "pass_through"), ("says", "pass_through")]
    assert "why" not in report["chain"][0]
    why = report["chain"][1]["why"]
    assert why.startswith("not")
    assert why.isprintable()
    assert len(why) < 5000
    assert (report["lister"], report["topics"]) == ("catalog", 9)


async def test_a_lister_that_filtered_and_one_for_which_nothing_changed() -> None:
    filtered = PluginOf(list_topics=lambda: TopicListingResult.success(NAMES[:1], filtered=True))
    assert (await explained({"p": filtered}, pattern="t/n/0-.*"))["plan"] == "lister"
    unchanged = PluginOf(list_topics=lambda: TopicListingResult.unchanged("01234567"))
    report = await explained({"p": unchanged}, topics_hash="01234567")
    assert chain(report) == [("p", "unchanged")]
    assert (report["changed"], report["topics"], report["bytes"], report["listed"]) == (False, 0, 0, None)


async def test_an_unsupported_pattern_says_why() -> None:
    report = await explained(pattern="t/n/(?!x).*")
    assert (report["plan"], report["filtered"], report["topics"]) == ("unsupported", False, 9)
    assert not report["pattern"]["supported"]
    assert "RE2 refuses it" in report["pattern"]["reason"]


@pytest.mark.parametrize("hook", ["list_topics", "visible"])
async def test_a_request_that_fails_says_who_and_what(hook: str) -> None:
    plugins = {
        "passes": PluginOf(list_topics=lambda: None),
        "fails": PluginOf(**{hook: lambda: 1 / 0}),
        "late": PluginOf(list_topics=lambda: None),
    }
    report = await explained(plugins)
    assert (report["error"], report["code"]) == ("plugin 'fails' failed: ZeroDivisionError", "MetadataError")
    assert report["plugin"] == "fails"
    assert "division by zero" in report["detail"]
    assert report["topics"] is report["lister"] is report["plan"] is None
    if hook == "list_topics":
        assert chain(report) == [("passes", "pass_through"), ("fails", "error"), ("late", "not_asked")]
    else:
        assert chain(report) == [("passes", "pass_through"), ("late", "pass_through")]
        assert [(step["plugin"], step["answer"]) for step in report["masks"]] == [("fails", "error")]


async def test_a_former_answer_shows_with_its_age_and_the_failure() -> None:
    answers: list[Any] = [TopicListingResult.success(NAMES[:4])]

    def broker_core_list_topics() -> Any:
        return answers.pop()

    plugins = {"p": PluginOf(list_topics=broker_core_list_topics)}
    dispatcher = Dispatcher(PluginRegistry.load(given=plugins, tables={"p": {"on_failure": "stale"}}))
    pipeline = Pipeline(MemoryLister(NAMES), dispatcher, Permits(), Metrics())
    request = ListingRequest(NamespaceName("t", "n"))
    try:
        fresh, stale = [await explain(pipeline, request) for _ in range(2)]
    finally:
        await dispatcher.shutdown()
        pipeline.close()
    assert (fresh["stale_s"], stale["topics_hash"]) == (None, fresh["topics_hash"])
    assert chain(stale) == [("p", "success")]
    (step,) = stale["chain"]
    assert "IndexError: pop from empty list" in step["error"]
    assert step["stale_s"] == stale["stale_s"] >= 0
    assert fresh["warnings"] == []
    assert "plugin 'p' failed: what stands in for its answer is its last one" in stale["warnings"][0]


async def test_bad_topics_show_in_the_chain() -> None:
    report = await explained({"p": PluginOf(list_topics=lambda: TopicListingResult.success(["bad"]))})
    assert chain(report) == [("p", "error")]
    assert "Invalid topic name 'bad'" in report["chain"][0]["error"]
    assert report["plugin"] == "p"


async def test_a_failure_that_is_no_plugins() -> None:
    error = ListingFailed("the disk is gone", code=ServerError.PersistenceError)
    report = await explained({"passes": PluginOf(list_topics=lambda: None)}, error=error)
    assert chain(report) == [("passes", "pass_through")]
    assert (report["error"], report["code"]) == ("the disk is gone", "PersistenceError")
    assert (report["plugin"], report["detail"]) == (None, "the disk is gone")


async def test_a_plugin_cannot_change_the_properties_that_the_next_one_reads() -> None:
    def broker_core_list_topics(properties: Any) -> None:
        properties["region"] = "us"

    report = await explained(
        {"p": PluginOf(list_topics=broker_core_list_topics)}, properties={"region": "eu"}
    )
    assert (report["error"], report["properties"]) == ("plugin 'p' failed: TypeError", {"region": "eu"})


async def test_who_asks_is_shown() -> None:
    asker = Asker(role="alice", remote_address="203.0.113.7:1", client_version="Pulsar-Java-v4")
    report = await explained(asker=asker)
    assert report["asker"] == {
        "role": "alice",
        "original_principal": None,
        "address": "203.0.113.7:1",
        "client_version": "Pulsar-Java-v4",
    }
    assert report["warnings"] == []


async def test_a_lie_is_a_warning() -> None:
    filtered = PluginOf(list_topics=lambda: TopicListingResult.success(NAMES[:4], filtered=True))
    report = await explained({"p": filtered}, pattern="t/n/0-.*")
    assert (report["topics"], report["listed"]) == (2, 4)
    (warning,) = report["warnings"]
    assert warning.startswith("plugin 'p' says that it filtered (filtered=True), but not all of the 4 topics")
    wrong = PluginOf(list_topics=lambda: TopicListingResult.success(NAMES[:4], topics_hash="01234567"))
    report = await explained({"p": wrong})
    (warning,) = report["warnings"]
    assert "plugin 'p' gave the topics hash '01234567'" in warning
    assert report["topics_hash"] in warning


async def test_a_failure_that_a_former_answer_could_stand_in_for_is_a_warning() -> None:
    tables: dict[str, dict[str, object]] = {"p": {"on_failure": "stale", "max_stale": "90s"}}
    report = await explained({"p": PluginOf(list_topics=lambda: 1 / 0)}, tables=tables)
    (warning,) = report["warnings"]
    assert "a server that has one to this question, at most 90 s old, answers with that" in warning
    report = await explained({"p": PluginOf(list_topics=lambda: 1 / 0)}, tables={"p": {"on_failure": "next"}})
    assert report["warnings"] == []


async def test_it_shows_what_was_kept_and_what_a_plugin_asked_behind_it() -> None:
    async def behind(request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.success((await request.rest(pattern=None)).selection)

    plugins = {
        "a": PluginOf(list_topics=behind),
        "b": PluginOf(list_topics=lambda: TopicListingResult.success([]), version=lambda: "7"),
    }
    async with made(plugins=plugins) as m:
        (await m.ask()).release()
        report = await explain(m.pipeline, request())
    (rest,) = report["rest"]
    assert (rest["plugin"], rest["topics"], rest["rest"]) == ("a", 0, [])
    assert [(step["plugin"], step["version"], step["kept"]) for step in rest["chain"][-1:]] == [
        ("b", "7", True)
    ]
