"""Gates: all must let a request pass, and every failure refuses it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.asker import Access, Asker, Refused
from broker_core.errors import Cause, ListingFailed, ServerError, TooManyRequests
from broker_core.names import NamespaceName, TopicName
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.call.plugin_runner import PluginRunner
from broker_core.plugins.failures import ChainStep, PluginFailed, RefusedByPlugin
from broker_core.plugins.hooks.gates import pass_gates
from broker_core.plugins.load.registry import PluginRegistry
from tests.support.clock import breakers_stay_open
from tests.support.plugins import PluginOf

TOPIC = TopicName.parse("persistent://acme/orders/x")
ACCESS = Access("lookup", TOPIC.namespace, TOPIC, Asker(role="alice"))


def gates(*functions: Callable[..., Any], **table: object) -> list[HookCaller]:
    registry = PluginRegistry()
    loaded = [
        registry.register(f"p{number}", PluginOf(authorize=function), table)
        for number, function in enumerate(functions)
    ]
    return [HookCaller(each, "broker_core_authorize", PluginRunner(each.name)) for each in loaded]


async def closed(*functions: Callable[..., Any], **table: object) -> PluginFailed:
    with pytest.raises(PluginFailed) as caught:
        await pass_gates(gates(*functions, **table), ACCESS, None)
    assert (caught.value.cause, caught.value.code) == (Cause.PLUGIN, ServerError.AuthorizationError)
    return caught.value


async def test_each_is_asked_and_all_must_let_it_pass() -> None:
    seen: list[object] = []

    async def later(access: Access) -> None:
        seen.append(access)

    def in_a_thread(access: Access) -> None:
        seen.append(access)

    steps: list[ChainStep] = []
    await pass_gates(gates(later, in_a_thread, later), ACCESS, steps)
    assert seen == [ACCESS] * 3
    assert [(step.plugin, step.answer) for step in steps] == [
        ("p0", "allowed"),
        ("p1", "allowed"),
        ("p2", "allowed"),
    ]


@pytest.mark.parametrize("place", range(3))
async def test_one_refusal_is_enough_wherever_it_stands(place: int) -> None:
    functions: list[Callable[..., Any]] = [lambda: None, lambda: None, lambda: None]
    functions[place] = lambda access: Refused(f"{access.asker.role} must not {access.action} {access.topic}")
    callers, steps = gates(*functions), list[ChainStep]()
    with capture_logs() as logs, pytest.raises(RefusedByPlugin) as caught:
        await pass_gates(callers, ACCESS, steps)
    assert caught.value.message == "alice must not lookup persistent://acme/orders/x"
    assert (caught.value.cause, caught.value.reason) == (Cause.DENIED, "gate")
    assert (caught.value.plugin, steps[-1].answer) == (f"p{place}", "refused")
    assert [entry["plugin"] for entry in logs] == [f"p{place}"]
    assert callers[place].statistics.answers == {"refused": 1}
    assert callers[place].breaker.failures == 0


async def test_a_refusal_may_have_another_cause() -> None:
    with pytest.raises(RefusedByPlugin) as caught:
        await pass_gates(gates(lambda: Refused("who are you?", Cause.UNAUTHENTICATED)), ACCESS, None)
    assert caught.value.code is ServerError.AuthenticationError


def raising(error: BaseException) -> Callable[[], Any]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ValueError("secret"), "plugin 'p0' failed: ValueError"),
        (SystemExit(1), "plugin 'p0' failed: SystemExit"),
        (ListingFailed("no directory", code=ServerError.ServiceNotReady), "plugin 'p0' failed: no directory"),
        (ListingFailed("no directory", counts=False), "plugin 'p0' failed: no directory"),
        (TooManyRequests("later", reason="x"), "plugin 'p0' failed: later"),
    ],
)
async def test_whatever_it_raises_keeps_it_closed(error: BaseException, says: str) -> None:
    failure = await closed(raising(error), lambda: None, on_failure="next")
    assert failure.message == says
    assert "secret" not in failure.message


@pytest.mark.parametrize("answer", [True, False, "no", 0, (), Refused, NamespaceName("a", "b"), object()])
async def test_an_answer_that_is_none_keeps_it_closed(answer: object) -> None:
    failure = await closed(lambda: answer)
    assert failure.reason == "plugin_answer"
    assert "gave a wrong answer: it returned" in failure.message
    assert "write `return" in failure.message


async def test_a_refusal_that_was_changed_keeps_it_closed() -> None:
    refused = object.__new__(Refused)
    assert (await closed(lambda: refused)).reason == "plugin_answer"

    class Own(Refused):
        pass

    assert (await closed(lambda: Own("no"))).reason == "plugin_answer"


@pytest.mark.parametrize("on_failure", ["error", "next", "stale"])
async def test_a_deadline_and_an_open_breaker_keep_it_closed(
    on_failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breakers_stay_open(monkeypatch)
    gate = threading.Event()

    async def waits() -> None:
        await asyncio.Event().wait()

    for function in (waits, lambda: gate.wait(30)):
        failure = await closed(function, deadline="10ms", on_failure=on_failure)
        assert failure.reason == "plugin_deadline"
        assert "did not answer within 0.01 s" in failure.message
    gate.set()
    callers = gates(waits, deadline="1ms", on_failure=on_failure)
    reasons = []
    for _ in range(6):
        with pytest.raises(PluginFailed) as caught:
            await pass_gates(callers, ACCESS, None)
        assert caught.value.cause is Cause.PLUGIN
        reasons.append(caught.value.reason)
    assert reasons == ["plugin_deadline"] * 5 + ["plugin_breaker"]


@pytest.mark.parametrize("wrong", [True, False])
async def test_a_question_that_a_gate_fails_on_locks_nobody_else_out(
    wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    breakers_stay_open(monkeypatch)
    broken = True

    def fails_on_it() -> Any:
        if broken and not wrong:
            raise OSError
        return broken or None

    callers = gates(fails_on_it)
    for _ in range(10):
        with pytest.raises(PluginFailed):
            await pass_gates(callers, ACCESS, None)
    broken = False
    await pass_gates(callers, ACCESS, None)


async def test_no_decision_is_kept() -> None:
    answers = iter([None, Refused("not now"), None])
    callers = gates(lambda: next(answers))
    await pass_gates(callers, ACCESS, None)
    with pytest.raises(RefusedByPlugin, match="not now"):
        await pass_gates(callers, ACCESS, None)
    await pass_gates(callers, ACCESS, None)


async def test_what_the_client_is_told_is_bounded() -> None:
    with pytest.raises(RefusedByPlugin) as caught:
        await pass_gates(gates(lambda: Refused("no\x1b[31m" + "x" * 10_000)), ACCESS, None)
    assert caught.value.message.startswith("no\\x1b[31mxxx")
    assert len(caught.value.message) < 5000
