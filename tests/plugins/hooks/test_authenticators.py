"""Authenticators: the first principal counts, every failure refuses the client, and no credentials are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.authentication import AuthenticationFailed
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.call.plugin_runner import PluginRunner
from broker_core.plugins.hooks.authenticators import authenticated_by
from broker_core.plugins.load.registry import PluginRegistry
from tests.support.clock import breakers_stay_open
from tests.support.plugins import PluginOf

PEER = Peer("127.0.0.1:1", "pulsar", is_tls=True, common_name="alice")
DATA = b"user:hunter2"


def _callers(*functions: Callable[..., Any], **table: object) -> list[HookCaller]:
    registry = PluginRegistry()
    loaded = [
        registry.register(f"p{number}", PluginOf(authenticate=function), table)
        for number, function in enumerate(functions)
    ]
    return [HookCaller(each, "broker_core_authenticate", PluginRunner(each.name)) for each in loaded]


async def _refused(callers: list[HookCaller]) -> str:
    with pytest.raises(AuthenticationFailed) as caught:
        await authenticated_by(callers, "sasl", DATA, PEER)
    assert caught.value.reason == "plugin"
    assert "hunter2" not in str(caught.value)
    return caught.value.detail


async def test_each_is_asked_until_one_knows_the_client() -> None:
    seen: list[object] = []

    async def passes(method: str, data: bytes, peer: Peer) -> None:
        seen.append((method, data, peer))

    def knows(method: str, peer: Peer) -> Principal:
        return Principal(f"{method}/{peer.common_name}", 5)

    callers = _callers(passes, knows, lambda: pytest.fail("it is not asked any more"))
    assert await authenticated_by(callers, "sasl", DATA, PEER) == Principal("sasl/alice", 5)
    assert seen == [("sasl", DATA, PEER)]
    assert callers[0].statistics.answers == {"pass_through": 1}
    assert callers[1].statistics.answers == {"authenticated": 1}


async def test_nobody_knows_the_client() -> None:
    assert await authenticated_by(_callers(lambda: None, lambda: None), "sasl", DATA, PEER) is None
    assert await authenticated_by([], "sasl", DATA, PEER) is None


@pytest.mark.parametrize(
    "error",
    [
        ValueError("hunter2"),
        KeyError("hunter2"),
        SystemExit("hunter2"),
        ListingFailed("hunter2"),
        TooManyRequests("hunter2", reason="x"),
        ExceptionGroup("hunter2", [ValueError("hunter2")]),
    ],
)
async def test_an_exception_refuses_the_client_and_shows_no_credentials(error: BaseException) -> None:
    cause = ValueError("hunter2")

    def fails() -> None:
        raise error from cause

    callers = _callers(fails, lambda: Principal("root"), on_failure="next")
    with capture_logs() as logs:
        said = await _refused(callers)
    assert said == f"plugin 'p0' failed: {type(error).__name__}"
    assert "hunter2" not in repr(logs)
    assert [line["event"] for line in logs] == ["plugin failed"]
    assert "in fails" in logs[0]["exception"]
    assert "hunter2" not in repr(callers[0].describe())


@pytest.mark.parametrize("answer", [True, False, "hunter2", b"hunter2", 0, (), Principal, object()])
async def test_another_answer_refuses_the_client(answer: object) -> None:
    with capture_logs() as logs:
        said = await _refused(_callers(lambda: answer, lambda: Principal("root")))
    assert "gave a wrong answer: it returned" in said
    assert "write `return Principal(role)`" in said
    assert "hunter2" not in repr(logs)


async def test_a_role_that_is_none_refuses_the_client() -> None:
    assert "ValueError" in await _refused(_callers(lambda: Principal("")))


@pytest.mark.parametrize("on_failure", ["error", "next", "stale"])
async def test_a_deadline_and_an_open_breaker_refuse_the_client(
    on_failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breakers_stay_open(monkeypatch)

    async def waits() -> None:
        await asyncio.Event().wait()

    callers = _callers(waits, deadline="1ms", on_failure=on_failure)
    said = [await _refused(callers) for _ in range(6)]
    assert all("did not answer within 0.001 s" in each for each in said[:5])
    assert "is not asked for now" in said[5]


async def test_credentials_that_a_plugin_fails_on_lock_nobody_else_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breakers_stay_open(monkeypatch)

    def fails_on_some(data: bytes) -> Principal:
        return Principal(data.decode("ascii"))

    callers = _callers(fails_on_some)
    for _ in range(10):
        with pytest.raises(AuthenticationFailed):
            await authenticated_by(callers, "sasl", b"\xff", PEER)
    assert await authenticated_by(callers, "sasl", b"bob", PEER) == Principal("bob")


async def test_no_answer_is_kept() -> None:
    answers = iter([Principal("a"), None, Principal("b")])
    callers = _callers(lambda: next(answers))
    found = [await authenticated_by(callers, "sasl", DATA, PEER) for _ in range(3)]
    assert found == [Principal("a"), None, Principal("b")]
