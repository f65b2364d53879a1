"""The chain of plugins: order, pass through, failures by policy, masks, observers, start and end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from broker_core import ListingRequest, NamespaceName, TopicListingResult
from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.plugin_api.hookspecs import ListingOutcome
from broker_core.plugins import (
    ChainStep,
    Dispatcher,
    LoadedPlugin,
    PluginFailed,
    PluginLoadError,
    PluginRegistry,
)
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf, asked

TOPICS = pa.array([f"persistent://acme/orders/{n}" for n in "abc"], pa.large_string())


def dispatcher(
    plugins: dict[str, object], tables: dict[str, dict[str, object]] | None = None, **options: Any
) -> Dispatcher:
    return Dispatcher(PluginRegistry.load(tables=tables, given=plugins), **options)


def lists(answer: object) -> PluginOf:
    async def function(request: ListingRequest) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return PluginOf(list_topics=function)


def masks(answer: object) -> PluginOf:
    def function(topics: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return PluginOf(visible=function)


SUCCESS = TopicListingResult.success(["persistent://acme/orders/a"])
PASS = TopicListingResult.pass_through()


async def answers(chain: Dispatcher, request: ListingRequest | None = None) -> list[tuple[str, str]]:
    try:
        steps = (await chain.ask(request or asked())).steps
    except PluginFailed as failure:
        steps = failure.steps
    return [(step.plugin, step.answer) for step in steps]


async def test_without_plugins_nothing_is_asked() -> None:
    chain = dispatcher({})
    assert (chain.has_listers, chain.has_masks, chain.has_observers) == (False, False, False)
    result = await chain.ask(asked())
    assert (result.answer, result.plugin, result.steps) == (None, None, ())
    assert await chain.visible(asked(), TOPICS) is None
    assert not chain.lists(asked().namespace)
    assert not chain.masks(asked().namespace)
    await chain.startup()
    await chain.shutdown()


async def test_the_first_success_ends_the_chain() -> None:
    other = TopicListingResult.success([])
    chain = dispatcher({"a": lists(None), "b": lists(PASS), "c": lists(SUCCESS), "d": lists(other)})
    result = await chain.ask(asked())
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
    result = await dispatcher({"a": lists(TopicListingResult.success([])), "b": lists(SUCCESS)}).ask(asked())
    assert result.plugin == "a"


async def test_nobody_answers() -> None:
    result = await dispatcher({"a": lists(None), "b": lists(PASS)}).ask(asked())
    assert (result.answer, result.plugin, len(result.steps)) == (None, None, 2)


async def test_a_failure_is_an_error_by_default() -> None:
    chain = dispatcher({"a": lists(None), "b": lists(ValueError("x")), "c": lists(SUCCESS)})
    with pytest.raises(PluginFailed, match=r"^plugin 'b' failed: ValueError") as caught:
        await chain.ask(asked())
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
        await chain.ask(asked())
    assert caught.value.reason == "plugin_breaker"
    assert caught.value.plugin == "c"
    assert chain.breaker_states() == {"a": 2, "b": 0, "c": 2}
    assert [entry["state"] for entry in chain.describe()] == ["breaker open", "enabled", "breaker open"]


async def test_plugins_are_asked_about_their_namespaces_only() -> None:
    chain = dispatcher(
        {"a": lists(SUCCESS), "b": lists(SUCCESS), "m": masks(pa.array([True] * 3))},
        {"a": {"namespaces": ["globex/*"]}, "m": {"namespaces": ["globex/*"]}},
    )
    assert await answers(chain, asked("acme/x")) == [("a", "not_asked"), ("b", "success")]
    assert await answers(chain, asked("globex/x")) == [("a", "success"), ("b", "not_asked")]
    assert not chain.masks(NamespaceName("acme", "x"))
    assert chain.masks(NamespaceName("globex", "x"))
    assert await chain.visible(asked("acme/x"), TOPICS) is None
    only = dispatcher({"a": lists(SUCCESS)}, {"a": {"namespaces": ["globex/*"]}})
    assert (only.lists(NamespaceName("acme", "x")), only.lists(NamespaceName("globex", "x"))) == (False, True)


async def test_many_namespaces_are_not_remembered_for_ever() -> None:
    chain = dispatcher({"a": lists(SUCCESS)}, {"a": {"namespaces": ["acme/*"]}})
    for number in range(5000):
        assert chain.lists(NamespaceName("acme", str(number)))
    assert len(chain._chains) <= 4096


@pytest.mark.parametrize("answer", [["persistent://acme/orders/a"], True, {}, "x", pa.array(["x"])])
async def test_what_is_no_answer_is_a_failure(answer: object) -> None:
    with pytest.raises(
        PluginFailed, match=r"gave a wrong answer: it returned a .*, not a TopicListingResult or None"
    ):
        await dispatcher({"a": lists(answer)}).ask(asked())


async def test_unchanged_needs_the_hash_of_the_request() -> None:
    chain = dispatcher({"a": lists(TopicListingResult.unchanged("0a0b0c0d"))})
    result = await chain.ask(asked(topics_hash="0a0b0c0d"))
    assert result.answer is not None
    assert result.steps[0].answer == "unchanged"
    with pytest.raises(PluginFailed, match=r"unchanged.. with another hash"):
        await chain.ask(asked(topics_hash="ffffffff"))
    with pytest.raises(PluginFailed, match="the request carries no topics hash"):
        await chain.ask(asked())


async def test_where_masks_apply_listers_see_no_hash() -> None:
    seen: list[str | None] = []

    def lister(request: ListingRequest) -> None:
        seen.append(request.topics_hash)

    chain = dispatcher(
        {"a": PluginOf(list_topics=lister), "m": masks(None)}, {"m": {"namespaces": ["acme/masked"]}}
    )
    await chain.ask(asked("acme/masked", topics_hash="0a0b0c0d"))
    await chain.ask(asked("acme/open", topics_hash="0a0b0c0d"))
    assert seen == [None, "0a0b0c0d"]


async def test_an_answer_is_accepted_by_whoever_asks() -> None:
    async def accept(plugin: LoadedPlugin, answer: TopicListingResult) -> object:
        if plugin.name == "a":
            raise ListingFailed("returned a bad topic: 'x'", reason="bad_topics")
        return (plugin.name, answer)

    chain = dispatcher({"a": lists(SUCCESS), "b": lists(SUCCESS)})
    with pytest.raises(PluginFailed, match=r"^plugin 'a' returned a bad topic: 'x'$") as caught:
        await chain.ask(asked(), accept)
    assert caught.value.steps[0].answer == "error"
    assert [step.answer for step in caught.value.steps] == ["error", "not_asked"]
    going_on = dispatcher({"a": lists(SUCCESS), "b": lists(SUCCESS)}, {"a": {"on_failure": "next"}})
    result = await going_on.ask(asked(), accept)
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
        await chain.ask(asked(reserve_bytes=reserve))


async def test_masks_are_anded() -> None:
    chain = dispatcher(
        {
            "a": masks(pa.array([True, True, False])),
            "b": masks(None),
            "c": masks(np.array([True, False, True])),
        }
    )
    steps: list[ChainStep] = []
    mask = await chain.visible(asked(), TOPICS, steps=steps)
    assert mask is not None
    assert mask.to_pylist() == [True, False, False]
    assert [(step.plugin, step.answer) for step in steps] == [("a", "mask"), ("b", "mask"), ("c", "mask")]
    assert await dispatcher({"b": masks(None)}).visible(asked(), TOPICS) is None
    assert await chain.visible(asked(), TOPICS.slice(0, 0)) is None


@pytest.mark.parametrize(
    "answer", [ValueError("x"), pa.array([True]), [True, True, True], pa.array([1, 1, 1])]
)
async def test_a_mask_that_fails_is_always_an_error(answer: object) -> None:
    chain = dispatcher({"a": masks(answer)}, {"a": {"on_failure": "next"}})
    steps: list[ChainStep] = []
    with pytest.raises(PluginFailed, match=r"^plugin 'a' ") as caught:
        await chain.visible(asked(), TOPICS, steps=steps)
    assert [step.answer for step in steps] == ["error"]
    assert caught.value.plugin == "a"


async def test_a_failing_mask_opens_its_breaker_though_its_lister_answers() -> None:
    async def lister() -> object:
        return SUCCESS

    def mask() -> object:
        raise ValueError("x")

    chain = dispatcher({"a": PluginOf(list_topics=lister, visible=mask)})
    for reason in ["plugin_error"] * 5 + ["plugin_breaker"]:
        await chain.ask(asked())
        with pytest.raises(PluginFailed) as caught:
            await chain.visible(asked(), TOPICS)
        assert caught.value.reason == reason
    assert chain.describe()[0]["state"] == "breaker open"


async def test_what_answers_depend_on() -> None:
    def plugin(**hooks: Callable[..., Any]) -> PluginOf:
        return PluginOf(**hooks)

    def nothing(request: object) -> None: ...

    chain = dispatcher(
        {
            "a": plugin(list_topics=nothing, depends_on=lambda: {"pattern"}),
            "b": plugin(visible=nothing, depends_on=lambda: {"principal"}),
            "c": plugin(shutdown=lambda: None),  # neither lists nor masks
            "d": plugin(list_topics=nothing),
        },
        {"d": {"namespaces": ["globex/*"]}},
    )
    assert chain.depends_on_from(NamespaceName("acme", "x"), 0) == {"pattern"}
    assert chain.depends_on_from(NamespaceName("acme", "x"), 1) == frozenset()
    assert chain.mask_words(NamespaceName("acme", "x")) == {"principal"}
    assert chain.depends_on_from(NamespaceName("globex", "x"), 1) == {
        "pattern",
        "properties",
        "principal",
        "client",
        "address",
    }


async def test_observers_see_the_namespaces_of_theirs() -> None:
    seen: list[str] = []

    async def served(request: ListingRequest, outcome: ListingOutcome) -> None:
        seen.append(str(request.namespace))

    chain = dispatcher({"a": PluginOf(listing_served=served)}, {"a": {"namespaces": ["acme/*"]}})
    assert chain.has_observers
    outcome = ListingOutcome("served", "catalog", 1, False, "00000000", 0.1)
    chain.listing_served(asked("globex/x"), outcome)
    chain.listing_served(asked("acme/x"), outcome)
    await eventually(lambda: seen == ["acme/x"])
    await chain.shutdown()


async def test_a_false_claim_is_logged_once_and_counted() -> None:
    chain = dispatcher({"a": lists(SUCCESS)})
    with capture_logs() as logs:
        for _ in range(3):
            chain.claim_mismatch("a", 7)
    assert len(logs) == 1
    assert chain.claim_mismatches() == {"a": 3}
    with capture_logs() as logs:
        for _ in range(2):
            chain.hash_mismatch("a", 7)
    assert [entry["event"] for entry in logs] == ["plugin gave a wrong topics hash; the server computes it"]
    assert chain.claim_mismatches() == {"a": 5}
    assert chain.describe()[0]["claim_mismatches"] == 5


async def test_start_and_end_in_order() -> None:
    seen: list[str] = []

    def plugin(name: str) -> PluginOf:
        async def startup(broker: object) -> None:
            seen.append(f"start {name} {broker}")

        return PluginOf(startup=startup, shutdown=lambda: seen.append(f"end {name}"))

    chain = dispatcher({"a": plugin("a"), "b": plugin("b")})
    await chain.startup(lambda name: f"broker of {name}")
    await chain.shutdown()
    await chain.shutdown()
    assert seen == ["start a broker of a", "start b broker of b", "end b", "end a"]


async def test_a_failed_start_shuts_down_what_was_started() -> None:
    seen: list[str] = []

    def fail() -> None:
        raise OSError("no database")

    chain = dispatcher(
        {
            "a": PluginOf(shutdown=lambda: seen.append("end a")),
            "b": PluginOf(startup=fail, shutdown=lambda: seen.append("end b")),
            "c": PluginOf(startup=lambda: seen.append("start c"), shutdown=lambda: seen.append("end c")),
        }
    )
    with pytest.raises(PluginLoadError, match="plugin 'b' did not start: OSError: no database"):
        await chain.startup()
    assert seen == ["end a"]


async def test_warnings_are_logged_at_start() -> None:
    with capture_logs() as logs:
        await dispatcher({"a": object()}).startup()
    assert [entry["event"] for entry in logs] == ["plugin 'a' implements no hook"]


async def test_calls_are_told_and_abandoned_ones_are_counted() -> None:
    end = asyncio.Event()
    calls: list[tuple[str, str, str]] = []

    async def stubborn() -> None:
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                pass

    chain = dispatcher(
        {"a": PluginOf(list_topics=stubborn)},
        {"a": {"deadline": 0.01, "on_failure": "next"}},
        on_call=lambda plugin, hook, answer, seconds: calls.append((plugin, hook, answer)),
    )
    assert await answers(chain) == [("a", "error")]
    assert chain.abandoned_calls() == {"a": 1}
    assert calls == [("a", "list_topics", "error")]
    described = chain.describe()[0]
    assert described["threads"] == {"busy": 0, "waiting": 0}
    assert described["abandoned_calls"] == 1
    end.set()
    await eventually(lambda: chain.abandoned_calls() == {"a": 0})


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
        await dispatcher.ask(asked())
    assert caught.value.reason == "plugin_answer"
    await dispatcher.shutdown()
