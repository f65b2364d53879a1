"""Calling one hook of one plugin, with every kind of failure."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.errors import ListingFailed, ServerError, TooManyRequests
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugins.call.circuit_breaker import BreakerState, CircuitBreaker
from broker_core.plugins.call.hook_caller import ABANDONED_TASKS, HookCaller
from broker_core.plugins.call.plugin_runner import PluginRunner
from broker_core.plugins.call.plugin_threads import PluginThreads
from broker_core.plugins.failures import PluginFailed
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf, asked, loaded

HOOK = "broker_core_list_topics"


def caller(function: Callable[..., Any], *, cooldown: float = 5.0, **table: object) -> HookCaller:
    plugin = loaded(PluginOf(list_topics=function), **table)
    made = HookCaller(plugin, HOOK, PluginRunner("p"))
    made.breaker = CircuitBreaker(cooldown=cooldown)
    return made


def anything(answer: object, request: ListingRequest) -> tuple[object, str]:
    return answer, "success"


async def fails(ask: HookCaller, request: ListingRequest | None = None) -> PluginFailed:
    with pytest.raises(PluginFailed) as caught:
        await ask.call(request or asked(), anything)
    return caught.value


async def test_both_kinds_of_functions_answer() -> None:
    async def later(request: ListingRequest, namespace: object) -> object:
        return ["async", str(namespace)]

    def plain_function(namespace: object, properties: dict[str, str], mode: object) -> object:
        return ["plain", str(namespace), dict(properties), threading.current_thread().name]

    def passes_on(request: ListingRequest, namespace: object) -> object:
        return later(request, namespace)

    request = asked(properties={"a": "b"})
    assert (await caller(later).call(request, anything))[0] == ["async", "acme/orders"]
    assert (await caller(plain_function).call(request, anything))[0] == [
        "plain",
        "acme/orders",
        {"a": "b"},
        "plugin-p-1",
    ]
    assert (await caller(passes_on).call(request, anything))[0] == ["async", "acme/orders"]


async def test_the_observer_is_told_of_each_call() -> None:
    calls: list[tuple[str, str, str, bool]] = []

    async def function() -> None:
        raise ValueError("no")

    plugin = loaded(PluginOf(list_topics=function))
    ask = HookCaller(
        plugin,
        HOOK,
        PluginRunner("p"),
        on_call=lambda p, h, a, s: calls.append((p, h, a, s is not None)),
    )
    for _ in range(6):
        await fails(ask)
    assert calls == [("p", "list_topics", "error", True)] * 5 + [("p", "list_topics", "error", False)]
    assert ask.describe()["failures"] == {"plugin_error": 5, "plugin_breaker": 1}


@pytest.mark.parametrize(
    "error",
    [ValueError("secret text"), SystemExit(3), KeyboardInterrupt(), StopIteration(1), GeneratorExit()],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_whatever_a_plugin_raises_is_its_failure(error: BaseException, is_async: bool) -> None:
    def function(request: ListingRequest) -> None:
        raise error

    async def async_function(request: ListingRequest) -> None:
        raise error

    if is_async and isinstance(error, StopIteration):
        error = RuntimeError("what asyncio makes of it")
    failure = await fails(caller(async_function if is_async else function))
    assert str(failure) == f"plugin 'p' failed: {type(error).__name__}"  # no text of the exception
    assert (failure.code, failure.reason, failure.plugin) == (ServerError.MetadataError, "plugin_error", "p")
    assert str(error) in failure.detail


async def test_a_plugin_that_cancels_itself_has_failed() -> None:
    async def function() -> None:
        raise asyncio.CancelledError

    assert "CancelledError" in str(await fails(caller(function)))


async def test_a_plugin_may_say_what_the_client_is_told() -> None:
    async def function() -> None:
        raise ListingFailed("the index is being built", code=ServerError.ServiceNotReady)

    ask = caller(function)
    failure = await fails(ask)
    assert str(failure) == "plugin 'p' failed: the index is being built"
    assert failure.code is ServerError.ServiceNotReady
    assert ask.breaker.failures == 1


@pytest.mark.parametrize(
    "options",
    [{"code": ServerError.TooManyRequests}, {"counts": False}],
    ids=["load", "question"],
)
async def test_load_and_hard_questions_do_not_switch_a_plugin_off(options: dict[str, Any]) -> None:
    answers: list[Exception] = []

    async def function() -> str:
        if answers:
            raise answers.pop()
        return "answer"

    def refusals(number: int) -> None:
        answers.extend(ListingFailed("not this one", **options) for _ in range(number))

    ask = caller(function, cooldown=0.0)
    refusals(50)
    for _ in range(50):
        failure = await fails(ask)
        assert (str(failure), failure.reason) == ("plugin 'p' failed: not this one", "plugin_error")
        assert failure.code is options.get("code", ServerError.MetadataError)
    assert ask.breaker.failures == 0
    assert ask.statistics.answers["error"] == 50
    # A breaker that is open stays so, until a trial says that the plugin is well.
    answers.extend(ValueError() for _ in range(5))
    for _ in range(5):
        await fails(ask)
    refusals(3)
    for _ in range(3):
        await fails(ask)
        assert ask.describe()["breaker"] == "open"
    assert (await ask.call(asked(), anything))[0] == "answer"
    assert ask.describe()["breaker"] == "closed"


@pytest.mark.parametrize(
    "error", [TooManyRequests("no permits", reason="heap"), ListingFailed("the broker's own")]
)
async def test_what_the_permits_refuse_is_no_failure_of_the_plugin(error: ListingFailed) -> None:
    async def reserve(size: int) -> None:
        raise error

    async def function(request: ListingRequest) -> None:
        await request.reserve(1 << 30)

    ask = caller(function)
    with pytest.raises(ListingFailed) as caught:
        await ask.call(asked(reserve_bytes=reserve), anything)
    assert caught.value is error
    assert (ask.breaker.failures, ask.statistics.answers.total()) == (0, 0)


async def test_waiting_for_permits_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    async def reserve(size: int) -> None:
        time_passes(monkeypatch, 2 * AGES)
        for _ in range(5):
            await asyncio.sleep(0)  # a timer that is due would go off

    async def function(request: ListingRequest) -> str:
        await request.reserve(5)
        return "answer"

    answer, _ = await caller(function, deadline=AGES).call(asked(reserve_bytes=reserve), anything)
    assert answer == "answer"


async def test_a_hanging_function_meets_its_deadline() -> None:
    cancelled = asyncio.Event()

    async def function() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    ask = caller(function, deadline="20ms")
    failure = await fails(ask)
    assert (str(failure), failure.reason) == ("plugin 'p' did not answer within 0.02 s", "plugin_deadline")
    await asyncio.wait_for(cancelled.wait(), 60)
    await eventually(lambda: not len(ask.runner.abandoned))


async def test_a_function_that_swallows_its_cancellation_holds_nobody() -> None:
    end = asyncio.Event()

    async def function() -> None:
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                pass
        raise ValueError("too late to matter")

    ask = caller(function, deadline="10ms")
    for _ in range(3):
        assert (await fails(ask)).reason == "plugin_deadline"
    gc.collect()  # the tasks are kept, though nobody waits for them
    assert len(ask.runner.abandoned) == 3
    end.set()
    await eventually(lambda: not len(ask.runner.abandoned))


async def test_a_plugin_that_leaves_too_much_behind_is_not_called() -> None:
    end = asyncio.Event()
    calls = 0

    async def function() -> None:
        nonlocal calls
        calls += 1
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                pass

    ask = caller(function, deadline=0.001)
    ask.breaker = CircuitBreaker(threshold=10_000)
    for _ in range(ABANDONED_TASKS):
        await fails(ask)
    failure = await fails(ask)
    assert (failure.reason, calls) == ("plugin_threads", ABANDONED_TASKS)
    assert "100 of its calls are past their deadline" in str(failure)
    end.set()
    await eventually(lambda: not len(ask.runner.abandoned))


async def test_threads_that_hang_are_a_failure_at_once() -> None:
    gate = threading.Event()
    threads = PluginThreads("p", size=2)
    ask = HookCaller(
        loaded(PluginOf(list_topics=lambda: gate.wait(30)), deadline="20ms"), HOOK, PluginRunner("p", threads)
    )
    assert [(await fails(ask)).reason for _ in range(3)] == [
        "plugin_deadline",
        "plugin_deadline",
        "plugin_threads",
    ]
    gate.set()
    await eventually(lambda: threads.abandoned == 0)
    assert (await ask.call(asked(), anything))[0] is True


async def test_a_wrong_answer_is_a_failure() -> None:
    def check(answer: object, request: ListingRequest) -> tuple[object, str]:
        raise TypeError("it returned a list")

    ask = caller(lambda: ["a list"])
    with capture_logs() as logs, pytest.raises(PluginFailed) as caught:
        await ask.call(asked(), check)
    assert str(caught.value) == "plugin 'p' gave a wrong answer: it returned a list"
    assert (caught.value.reason, ask.breaker.failures) == ("plugin_answer", 1)
    # The traceback would be of the server's own check, and says nothing to the plugin's author.
    assert [(line["error"], "exception" in line) for line in logs] == [(str(caught.value), False)]


async def test_an_answer_that_is_not_accepted_opens_the_breaker_in_the_end() -> None:
    ask = caller(lambda: "names")
    for _ in range(5):
        with pytest.raises(PluginFailed, match=r"^plugin 'p' returned a bad topic: 'x'$") as caught:
            async with ask.calling(asked(), anything):
                raise ListingFailed("returned a bad topic: 'x'", reason="bad_topics")
        assert caught.value.reason == "plugin_topics"
    assert ask.breaker.state is BreakerState.OPEN
    assert ask.statistics.answers == {"error": 5}


async def test_accepting_is_not_the_plugins_time_and_its_limits_are_not_its_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask = caller(lambda: "names", deadline=AGES)
    async with ask.calling(asked(), anything) as answered:
        assert answered == ("names", "success")
        time_passes(monkeypatch, 2 * AGES)
        for _ in range(5):
            await asyncio.sleep(0)  # a timer that is due would go off
    assert ask.statistics.percentile(100) < AGES  # type: ignore[operator]
    with pytest.raises(TooManyRequests):
        async with ask.calling(asked(), anything):
            raise TooManyRequests("no permits", reason="heap")
    assert ask.breaker.failures == 0


async def test_after_five_failures_it_is_left_alone_and_then_tried_once() -> None:
    broken = True
    calls = 0

    async def function() -> str:
        nonlocal calls
        calls += 1
        if broken:
            raise OSError("database gone")
        return "answer"

    ask = caller(function, cooldown=100)
    for _ in range(5):
        await fails(ask)
    failure = await fails(ask)
    assert (failure.reason, calls) == ("plugin_breaker", 5)
    assert str(failure) == "plugin 'p' is not asked for now: it failed 5 times in a row"
    ask.breaker._opened_at -= 100
    assert (await fails(ask)).reason == "plugin_error"
    assert (await fails(ask)).reason == "plugin_breaker"
    broken = False
    ask.breaker._opened_at -= 100
    assert (await ask.call(asked(), anything))[0] == "answer"
    assert (ask.breaker.state, ask.breaker.opened, calls) == (BreakerState.CLOSED, 2, 7)


async def test_a_request_that_goes_takes_its_call_along() -> None:
    ended = asyncio.Event()

    async def function() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    ask = caller(function)
    call = asyncio.create_task(ask.call(asked(), anything))
    for _ in range(5):
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(ended.wait(), 60)
    assert (ask.breaker.failures, ask.statistics.answers.total()) == (0, 0)


async def test_a_trial_whose_client_goes_is_not_the_last() -> None:
    block = False

    async def function() -> None:
        if block:
            await asyncio.Event().wait()
        raise ValueError

    ask = caller(function, cooldown=0.0)
    for _ in range(5):
        await fails(ask)
    block = True
    trial = asyncio.create_task(ask.call(asked(), anything))
    for _ in range(5):
        await asyncio.sleep(0)
    assert ask.breaker.state is BreakerState.HALF_OPEN
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial
    block = False
    assert (await fails(ask)).reason == "plugin_error"  # it was called


async def test_failures_are_logged_but_not_each() -> None:
    async def function() -> None:
        raise ValueError("what went wrong")

    ask = caller(function)
    with capture_logs() as logs:
        for _ in range(5):
            await fails(ask)
    assert [(entry["plugin"], entry["breaker"], entry["not_logged"]) for entry in logs] == [
        ("p", "closed", 0),
        ("p", "open", 3),
    ]
    assert logs[0]["error"] == "plugin 'p' failed: ValueError: what went wrong"
    assert logs[0]["exception"].startswith("Traceback")
    assert logs[0]["exception"].endswith("ValueError: what went wrong")


async def test_what_a_plugin_says_on_purpose_is_logged_without_a_traceback() -> None:
    async def function() -> None:
        raise ListingFailed("the database is down")

    with capture_logs() as logs:
        await fails(caller(function))
    assert [entry["error"] for entry in logs] == ["plugin 'p' failed: the database is down"]
    assert "exception" not in logs[0]


async def test_any_hook_gets_the_values_that_it_names() -> None:
    seen: list[object] = []

    @dataclass(frozen=True)
    class Question:
        city: str
        street: str

    def function(request: object, namespace: object, topics: object) -> None:
        seen.extend([request, namespace, topics])

    plugin = loaded(PluginOf(list_topics=lambda request, namespace: function(request, namespace, None)))
    question = Question("Oslo", "Karl Johans gate")
    ask = HookCaller(plugin, HOOK, PluginRunner("p"))
    await ask.call(question, anything, namespace="a value")
    assert seen == [question, "a value", None]
    with pytest.raises(AttributeError, match="namespace"):  # of this question, it is the broker's mistake
        await ask.call(question, anything)
    assert ask.breaker.failures == 0


async def test_an_uncounted_call_leaves_no_trace() -> None:
    answers: list[Any] = ["answer", ValueError()]

    def function() -> Any:
        said = answers.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    ask = caller(function)
    assert await ask.uncounted(asked(), anything) == "answer"
    with pytest.raises(PluginFailed, match="failed: ValueError"):
        await ask.uncounted(asked(), anything)
    assert (ask.breaker.failures, ask.statistics.answers.total()) == (0, 0)
