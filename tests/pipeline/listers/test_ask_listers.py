"""Plugins are asked in their order, then the default lister."""

from __future__ import annotations

import itertools

import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.names import NamespaceName
from broker_core.pipeline import Answer, Pipeline
from broker_core.plugins import PluginFailed, RefusedByPlugin
from tests.support.chain_plugins import A, lists, lists_nothing, success
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, made, names
from tests.support.plugin_chains import PASS, SUCCESS, answers, dispatcher, listed
from tests.support.plugin_chains import lists as lists_so
from tests.support.plugins import PluginOf, asked


async def test_where_masks_apply_listers_see_no_hash() -> None:
    """What a mask takes away, the plugin's "unchanged" could not know."""
    seen: list[str | None] = []

    def lister(request: ListingRequest) -> None:
        seen.append(request.topics_hash)

    plugins = {"a": PluginOf(list_topics=lister), "m": PluginOf(visible=lambda: None)}
    async with made(plugins=plugins, tables={"m": {"namespaces": ["t/masked"]}}) as m:
        for namespace in ("t/masked", "t/open"):
            asked = ListingRequest(NamespaceName.parse(namespace), topics_hash="0a0b0c0d")
            (await m.pipeline.answer(asked)).release()
    assert seen == [None, "0a0b0c0d"]


async def test_the_default_lister_answers_where_all_plugins_pass() -> None:
    async with made(MemoryLister(FEW), {"a": lists_nothing(), "b": lists_nothing()}) as m:
        answer = await m.ask()
        assert answer.lister == "catalog"
        assert names(answer) == sorted(FEW)
    async with made(MemoryLister(FEW), {"a": lists_nothing(), "b": lists(A)}) as m:
        answer = await m.ask()
        assert answer.lister == "b"
        assert names(answer) == [A]
        assert not m.lister.asked


async def test_what_is_wrong_with_the_default_lister_is_said_of_it() -> None:
    class Elsewhere(MemoryLister):
        async def list_topics(self, request: ListingRequest) -> TopicListingResult:
            return success(self.listing(NamespaceName("t", "other"), request.mode))

    async with made(Elsewhere(FEW)) as m:
        with pytest.raises(ListingFailed, match=r"^catalog returned a listing of t/other"):
            await m.ask()


async def test_the_first_success_ends_the_chain() -> None:
    other = TopicListingResult.success([])
    chain = dispatcher(
        {"a": lists_so(None), "b": lists_so(PASS), "c": lists_so(SUCCESS), "d": lists_so(other)}
    )
    answer, steps = await listed(chain)
    assert isinstance(answer, Answer)
    assert (answer.lister, answer.topics) == ("c", 1)
    assert [(step.plugin, step.answer) for step in steps] == [
        ("a", "pass_through"),
        ("b", "pass_through"),
        ("c", "success"),
        ("d", "not_asked"),
    ]
    assert all(step.seconds > 0 for step in steps[:3])


async def test_an_empty_success_is_an_answer() -> None:
    answer, _ = await listed(dispatcher({"a": lists_so(success([])), "b": lists_so(SUCCESS)}))
    assert isinstance(answer, Answer)
    assert (answer.lister, answer.topics) == ("a", 0)


async def test_a_failure_is_an_error_by_default() -> None:
    chain = dispatcher({"a": lists_so(None), "b": lists_so(ValueError("x")), "c": lists_so(SUCCESS)})
    failure, steps = await listed(chain)
    assert isinstance(failure, PluginFailed)
    assert str(failure) == "plugin 'b' failed: ValueError"
    assert [step.answer for step in steps] == ["pass_through", "error", "not_asked"]
    assert steps[1].error == "plugin 'b' failed: ValueError: x"


async def test_a_failure_asks_the_next_where_the_operator_says_so() -> None:
    chain = dispatcher(
        {"b": lists_so(ValueError("x")), "c": lists_so(SUCCESS)}, {"b": {"on_failure": "next"}}
    )
    assert await answers(chain) == [("b", "error"), ("c", "success")]
    assert chain.describe()[0]["calls"]["list_topics"]["passed_over"] == 1


async def test_a_refusal_ends_the_chain() -> None:
    refused = TopicListingResult.refused("who are you?", Cause.UNAUTHENTICATED)
    chain = dispatcher({"a": lists_so(refused), "b": lists_so(SUCCESS)}, {"a": {"on_failure": "next"}})
    failure, steps = await listed(chain)
    assert isinstance(failure, RefusedByPlugin)
    assert (failure.message, failure.cause, failure.plugin) == ("who are you?", Cause.UNAUTHENTICATED, "a")
    assert (failure.reason, failure.counts) == ("refused", False)
    assert [step.answer for step in steps] == ["refused", "not_asked"]


async def test_no_answer_from_before_a_refusal_replaces_a_failure() -> None:
    said = iter([SUCCESS, TopicListingResult.refused("not for you"), ValueError("x")])

    async def each(request: ListingRequest) -> object:
        answer = next(said)
        if isinstance(answer, Exception):
            raise answer
        return answer

    chain = dispatcher({"a": PluginOf(list_topics=each)}, {"a": {"on_failure": "stale"}})
    pipeline = Pipeline(MemoryLister(), chain, Permits(), Metrics())
    (await pipeline.answer(asked())).release()
    for expected in (RefusedByPlugin, PluginFailed):
        with pytest.raises(expected):
            await pipeline.answer(asked())
    pipeline.close()


async def test_an_open_breaker_is_a_failure_under_the_same_policy() -> None:
    chain = dispatcher(
        {"a": lists_so(ValueError("x")), "b": lists_so(None), "c": lists_so(ValueError("y"))},
        {"a": {"on_failure": "next"}},
    )
    for _ in range(5):
        assert await answers(chain) == [("a", "error"), ("b", "pass_through"), ("c", "error")]
    failure, _ = await listed(chain)
    assert isinstance(failure, PluginFailed)
    assert (failure.reason, failure.plugin) == ("plugin_breaker", "c")
    assert chain.breaker_states() == {"a": 2, "b": 0, "c": 2}
    assert [entry["state"] for entry in chain.describe()] == ["breaker open", "enabled", "breaker open"]


async def test_an_open_breaker_is_answered_by_the_former_answer_under_stale() -> None:
    said = itertools.chain([SUCCESS], itertools.repeat(ValueError("x")))

    async def each(request: ListingRequest) -> object:
        calls.append(request)
        answer = next(said)
        if isinstance(answer, Exception):
            raise answer
        return answer

    calls: list[ListingRequest] = []
    plugins = dispatcher({"a": PluginOf(list_topics=each)}, {"a": {"on_failure": "stale"}})
    pipeline = Pipeline(MemoryLister(), plugins, Permits(), Metrics())
    for _ in range(12):
        answer = await pipeline.answer(asked())
        assert answer.lister == "a"
        answer.release()
    assert plugins.breaker_states() == {"a": 2}
    assert len(calls) == 6  # five of them failed
    pipeline.close()


async def test_unchanged_needs_the_hash_of_the_request() -> None:
    chain = dispatcher({"a": lists_so(TopicListingResult.unchanged("0a0b0c0d"))})
    answer, steps = await listed(chain, asked(topics_hash="0a0b0c0d"))
    assert isinstance(answer, Answer)
    assert [step.answer for step in steps] == ["unchanged"]
    assert "unchanged() with another hash" in str((await listed(chain, asked(topics_hash="ffffffff")))[0])
    assert "the request carries no topics hash" in str((await listed(chain))[0])


async def test_wrong_topics_are_a_failure_of_their_plugin() -> None:
    plugins = {"a": lists_so(success(["x"])), "b": lists_so(SUCCESS)}
    failure, steps = await listed(dispatcher(plugins))
    assert isinstance(failure, PluginFailed)
    assert str(failure).startswith("plugin 'a' returned a bad topic: ")
    assert [step.answer for step in steps] == ["error", "not_asked"]
    assert await answers(dispatcher(plugins, {"a": {"on_failure": "next"}})) == [
        ("a", "error"),
        ("b", "success"),
    ]


async def test_permits_that_are_refused_end_the_chain_whatever_the_policy() -> None:
    plugins = {"a": lists_so(TooManyRequests("no permits", reason="heap")), "b": lists_so(SUCCESS)}
    failure, _ = await listed(dispatcher(plugins, {"a": {"on_failure": "next"}}))
    assert isinstance(failure, TooManyRequests)
    assert failure.message == "no permits"
