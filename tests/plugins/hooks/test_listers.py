"""The chain of listers: order, pass through, failures by policy, invalid answers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.plugins import (
    ChainStep,
    Dispatcher,
    LoadedPlugin,
    PluginFailed,
    PluginRegistry,
)
from broker_core.plugins.hooks.listers import NOBODY, skipped_steps
from tests.support.plugin_chains import PASS, SUCCESS, answers, dispatcher, lists
from tests.support.plugins import PluginOf, asked


async def test_the_first_success_ends_the_chain() -> None:
    other = TopicListingResult.success([])
    chain = dispatcher({"a": lists(None), "b": lists(PASS), "c": lists(SUCCESS), "d": lists(other)})
    result = await chain.lister_hook.ask(asked())
    assert (result.answer, result.plugin) == (SUCCESS, "c")
    assert await answers(chain) == [
        ("a", "pass_through"),
        ("b", "pass_through"),
        ("c", "success"),
        ("d", "not_asked"),
    ]
    assert result.steps[3] == ChainStep("d", "not_asked")
    assert all(step.seconds > 0 for step in result.steps[:3])


async def test_an_empty_success_is_an_answer() -> None:
    result = await dispatcher(
        {"a": lists(TopicListingResult.success([])), "b": lists(SUCCESS)}
    ).lister_hook.ask(asked())
    assert result.plugin == "a"


async def test_nobody_answers() -> None:
    result = await dispatcher({"a": lists(None), "b": lists(PASS)}).lister_hook.ask(asked())
    assert (result.answer, result.plugin, len(result.steps)) == (None, None, 2)


async def test_a_failure_is_an_error_by_default() -> None:
    chain = dispatcher({"a": lists(None), "b": lists(ValueError("x")), "c": lists(SUCCESS)})
    with pytest.raises(PluginFailed, match=r"^plugin 'b' failed: ValueError") as caught:
        await chain.lister_hook.ask(asked())
    assert [step.answer for step in caught.value.steps] == ["pass_through", "error", "not_asked"]
    assert caught.value.steps[1].error == "plugin 'b' failed: ValueError: x"


async def test_a_failure_asks_the_next_where_the_operator_says_so() -> None:
    chain = dispatcher({"b": lists(ValueError("x")), "c": lists(SUCCESS)}, {"b": {"on_failure": "next"}})
    assert await answers(chain) == [("b", "error"), ("c", "success")]
    assert chain.describe()[0]["calls"]["list_topics"]["passed_over"] == 1


async def test_an_open_breaker_is_a_failure_under_the_same_policy() -> None:
    chain = dispatcher(
        {"a": lists(ValueError("x")), "b": lists(None), "c": lists(ValueError("y"))},
        {"a": {"on_failure": "next"}},
    )
    for _ in range(5):
        assert await answers(chain) == [("a", "error"), ("b", "pass_through"), ("c", "error")]
    with pytest.raises(PluginFailed) as caught:
        await chain.lister_hook.ask(asked())
    assert caught.value.reason == "plugin_breaker"
    assert caught.value.plugin == "c"
    assert chain.breaker_states() == {"a": 2, "b": 0, "c": 2}
    assert [entry["state"] for entry in chain.describe()] == ["breaker open", "enabled", "breaker open"]


@pytest.mark.parametrize("answer", [["persistent://acme/orders/a"], True, {}, "x", pa.array(["x"])])
async def test_what_is_no_answer_is_a_failure(answer: object) -> None:
    with pytest.raises(
        PluginFailed, match=r"gave a wrong answer: it returned a .*, not a TopicListingResult or None"
    ):
        await dispatcher({"a": lists(answer)}).lister_hook.ask(asked())


async def test_unchanged_needs_the_hash_of_the_request() -> None:
    chain = dispatcher({"a": lists(TopicListingResult.unchanged("0a0b0c0d"))})
    result = await chain.lister_hook.ask(asked(topics_hash="0a0b0c0d"))
    assert result.answer is not None
    assert result.steps[0].answer == "unchanged"
    with pytest.raises(PluginFailed, match=r"unchanged.. with another hash"):
        await chain.lister_hook.ask(asked(topics_hash="ffffffff"))
    with pytest.raises(PluginFailed, match="the request carries no topics hash"):
        await chain.lister_hook.ask(asked())


async def test_an_answer_is_accepted_by_whoever_asks() -> None:
    async def accept(plugin: LoadedPlugin, answer: TopicListingResult) -> object:
        if plugin.name == "a":
            raise ListingFailed("returned a bad topic: 'x'", reason="bad_topics")
        return (plugin.name, answer)

    chain = dispatcher({"a": lists(SUCCESS), "b": lists(SUCCESS)})
    with pytest.raises(PluginFailed, match=r"^plugin 'a' returned a bad topic: 'x'$") as caught:
        await chain.lister_hook.ask(asked(), accept)
    assert caught.value.steps[0].answer == "error"
    assert [step.answer for step in caught.value.steps] == ["error", "not_asked"]
    going_on = dispatcher({"a": lists(SUCCESS), "b": lists(SUCCESS)}, {"a": {"on_failure": "next"}})
    result = await going_on.lister_hook.ask(asked(), accept)
    assert (result.plugin, result.accepted) == ("b", ("b", SUCCESS))


async def test_permits_that_are_refused_end_the_chain_whatever_the_policy() -> None:
    async def reserve(size: int) -> None:
        raise TooManyRequests("no permits", reason="heap")

    async def greedy(request: ListingRequest) -> object:
        await request.reserve(1 << 40)
        return SUCCESS

    chain = dispatcher(
        {"a": PluginOf(list_topics=greedy), "b": lists(SUCCESS)}, {"a": {"on_failure": "next"}}
    )
    with pytest.raises(TooManyRequests):
        await chain.lister_hook.ask(asked(reserve_bytes=reserve))


class _Mine(TopicListingResult):
    """May have changed what it likes."""


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (["persistent://acme/orders/a"], "a list, .*: write `return TopicListingResult.success\\(topics\\)`"),
        ({"a"}, "a set, .*: write `return TopicListingResult.success"),
        ("persistent://acme/orders/a", "a str, .*: write `return TopicListingResult.success"),
        ((name for name in "ab"), "a generator, .*: write `return TopicListingResult.success"),
        (True, "a bool, .*: write `return None` to pass"),
        (TopicListingResult.pass_through, "write the brackets of a call"),
        (TopicListingResult, "write the brackets of a call"),
        (object.__new__(TopicListingResult), "AttributeError"),
        (_Mine.success([]), "a _Mine, and not what"),
    ],
)
async def test_what_is_no_answer_says_what_to_write(answer: Any, says: str) -> None:
    dispatcher = Dispatcher(PluginRegistry.load(given={"p": PluginOf(list_topics=lambda: answer)}))
    with pytest.raises(PluginFailed, match=f"plugin 'p' gave a wrong answer: .*{says}") as caught:
        await dispatcher.lister_hook.ask(asked())
    assert caught.value.reason == "plugin_answer"
    await dispatcher.shutdown()


def test_nobody_answers_nothing() -> None:
    assert (NOBODY.answer, NOBODY.plugin, NOBODY.steps) == (None, None, ())
    assert [step.answer for step in skipped_steps([("a", None), ("b", None)])] == ["not_asked"] * 2
