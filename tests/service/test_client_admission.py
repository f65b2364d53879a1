"""The admission of many clients at a time, over all protocols."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from broker_core.access.authentication import AuthenticationFailed, InvalidRoles
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.concurrency.loop_turns import TURN_SECONDS, has_time
from broker_core.metrics.metrics import Metrics
from broker_core.service import Admission, LoginAttempt, OtherName, OtherPrincipal
from broker_core.service.client_admission import _Lane
from tests.support.clock import time_passes, time_stands
from tests.support.eventually import eventually
from tests.support.scripted_authenticator import ScriptedAuthenticator

HOST = "192.0.2.1"


class Door:
    """An admission, and attempts to get in."""

    def __init__(self, **settings: object) -> None:
        self.authenticator = ScriptedAuthenticator(**settings)
        self.metrics = Metrics()
        self.admission = Admission(self.authenticator, self.metrics)

    def later(
        self, data: str, method: str = "slow", host: str = HOST, transport: str = "pulsar"
    ) -> asyncio.Task[object]:
        attempt = LoginAttempt(Peer(f"{host}:1", transport), "client", method, data.encode())
        return asyncio.create_task(self.admission.later(attempt))

    def count(self, outcome: str, transport: str = "pulsar") -> float | None:
        labels = {"transport": transport, "outcome": outcome}
        name = "broker_core_authentications_total"
        value: float | None = self.metrics.registry.get_sample_value(name, labels)
        return value

    def failures(self, host: str = HOST) -> int:
        return round(self.admission.pace._failures.get(host, (0.0, 0.0))[0])

    def has_failed(self, times: int, host: str = HOST) -> None:
        for _ in range(times):
            self.admission.pace.failed(host)


def attempt(data: str = "alice", method: str | None = "token", transport: str = "pulsar") -> LoginAttempt:
    return LoginAttempt(Peer(f"{HOST}:1", transport), "v", method, data.encode())


async def test_clients_without_credentials_are_counted_apart_and_named_by_their_address() -> None:
    door = Door(anonymous_role="guest")
    with capture_logs() as logs:
        for transport in ("kafka", "http"):
            admitted = door.admission.without_credentials(Peer(f"{HOST}:1", transport))
            assert admitted is not None
            assert admitted.principal is door.authenticator.anonymous
            assert door.count("anonymous", transport) == 1
        door.admission.now(attempt("guest"))  # it has proven the role
    assert door.count("ok") == 1
    assert [(line["event"], line["peer"]) for line in logs] == [("client without credentials", f"{HOST}:1")]


async def test_the_role_of_nobody_is_not_for_wrong_credentials() -> None:
    door = Door(anonymous_role="guest")
    nobody = door.authenticator.anonymous
    assert nobody is not None
    wrong = attempt()
    wrong.needs_proof = True
    with capture_logs(), pytest.raises(AuthenticationFailed):
        await door.admission.later(wrong, lambda: nobody)


async def test_a_turn_without_time_checks_nothing() -> None:
    door = Door()
    assert door.admission.now(attempt()) is not None
    until = asyncio.get_running_loop().time() + 1.1 * TURN_SECONDS
    while asyncio.get_running_loop().time() < until:
        pass
    assert not has_time()
    assert door.admission.now(attempt()) is None
    begun = door.admission.later(attempt())
    begun.send(None)  # in this turn
    begun.close()
    assert len(door.authenticator.asked) == 1
    assert (await door.admission.later(attempt())).role == "alice"
    assert len(door.authenticator.asked) == 2


async def test_a_verdict_that_takes_waiting_is_begun_later() -> None:
    """A coroutine that nobody awaits or closes is a warning, with which tests fail."""
    door = Door()
    door.authenticator.gate.set()
    assert door.admission.now(attempt(method="slow")) is None
    assert door.authenticator.most == 0
    assert (await door.admission.later(attempt(method="slow"))).role == "alice"


@pytest.mark.parametrize("limit", [1, 32])
async def test_one_address_has_few_checks_under_way_over_all_protocols(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    door = Door()
    if limit == 1:
        door.has_failed(40)
    tasks = [door.later("alice", transport=("pulsar", "kafka", "http")[port % 3]) for port in range(99)]
    await eventually(lambda: len(door.authenticator.asked) == 99)
    time_passes(monkeypatch, 6.0)
    await eventually(lambda: door.authenticator.most == limit)
    other = door.later("bob", host="192.0.2.2")
    await eventually(lambda: door.authenticator.most == limit + 1)
    for task in tasks[limit:]:
        task.cancel()
    door.authenticator.gate.set()
    await asyncio.gather(*tasks[:limit], other)
    assert door.authenticator.most == limit + 1
    del tasks, task, other
    await eventually(lambda: not door.admission._lanes)


async def test_one_by_one_the_newest_and_the_next_name_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door()
    door.has_failed(40)
    order: list[str] = []

    async def come(name: str, number: int) -> None:
        async with door.admission.turn(attempt(f"{name}:{number}", "basic")):
            order.append(f"{name}{number}")
            await door.authenticator.gate.wait()

    names = [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1), ("a", 5), ("a", 6)]
    tasks = [asyncio.create_task(come(*each)) for each in names]
    await eventually(lambda: HOST in door.admission._lanes)
    time_passes(monkeypatch, 6.0)
    await eventually(lambda: order == ["a1"])
    await eventually(lambda: len(door.admission._lanes[HOST]._waiting.items) == 6)
    tasks[2].cancel()
    await asyncio.wait(tasks[2:3])
    door.authenticator.gate.set()
    await asyncio.wait(tasks)
    assert order == ["a1", "a6", "a2", "a5", "b1", "a4"]


async def test_a_turn_that_comes_to_a_client_that_has_gone_is_the_next_one_s() -> None:
    lane = _Lane()

    async def come() -> None:
        async with lane.one_by_one(b"a"):
            pass

    async with lane.one_by_one(b"a"):
        tasks = [asyncio.create_task(come()) for _ in range(4)]
        await eventually(lambda: len(lane._waiting.items) == 4)
        tasks[3].cancel()  # while it waits, in this turn of the event loop
    assert len(lane._waiting.items) == 2
    tasks[2].cancel()  # it was the newest: its turn has come
    await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [False, False, True, True]
    async with lane.one_by_one(b"a"):
        assert not lane._waiting.items


async def test_failures_over_all_protocols_slow_an_address_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = Door()
    door.authenticator.gate.set()
    with capture_logs():
        for transport in ("pulsar", "kafka", "http") * 3:
            with pytest.raises(AuthenticationFailed):
                await door.later("!bad_password", transport=transport)
    assert door.failures() == 9
    door.has_failed(31)
    right = door.later("alice", transport="http")
    await door.later("bob", host="192.0.2.2")
    assert (await door.admission.later(attempt())).role == "alice", "what is known at once does not wait"
    assert not right.done()
    time_passes(monkeypatch, 6.0)
    await right


async def test_a_refusal_that_is_known_at_once_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door()
    door.has_failed(40)
    assert door.admission.now(attempt("!bad_token")) is None
    assert door.failures() == 40, "it is counted once"
    with capture_logs():
        task = door.later("!bad_token", "token")
        await eventually(lambda: door.count("bad_token") == 1)
        assert not task.done()
        time_passes(monkeypatch, 6.0)
        with pytest.raises(AuthenticationFailed):
            await task


@pytest.mark.parametrize(
    ("reason", "transport", "counted"),
    [
        ("overloaded", "pulsar", 0),
        ("plugin", "http", 0),
        ("no_credentials", "http", 0),
        ("no_credentials", "pulsar", 1),
        ("bad_token", "http", 1),
    ],
)
async def test_which_failures_count(reason: str, transport: str, counted: int) -> None:
    door = Door()
    with capture_logs() as logs, pytest.raises(AuthenticationFailed):
        door.admission.now(attempt(f"!{reason}", transport=transport))
    assert (door.failures(), door.count(reason, transport)) == (counted, 1)
    [line] = logs
    assert (line["event"], line["reason"]) == ("authentication failed", reason)


async def test_roles_and_principals_that_are_no_good(monkeypatch: pytest.MonkeyPatch) -> None:
    time_stands(monkeypatch)  # or this turn would have no time for all of them
    door = Door(proxy_roles=["proxy"])
    renewing, named = attempt("bob"), attempt("bob")
    renewing.former, named.name = Principal("alice"), "alice"
    with capture_logs() as logs:
        with pytest.raises(InvalidRoles):
            door.admission.now(attempt("proxy"))
        with pytest.raises(OtherPrincipal):
            door.admission.now(renewing)
        with pytest.raises(OtherName):
            door.admission.now(named)
        assert door.admission.by_certificate(Peer("192.0.2.2:1", "kafka", True, "x")) is None
    assert [line["reason"] for line in logs] == [
        "invalid_roles",
        "other_principal",
        "bad_role",
        "no_credentials",
    ]
    assert (logs[0]["role"], logs[1]["role"], logs[1]["other"]) == ("proxy", "alice", "bob")
    assert (door.failures(), door.failures("192.0.2.2")) == (3, 1)


async def test_one_network_is_one_client() -> None:
    door = Door()
    with capture_logs():
        for number in range(8):
            with pytest.raises(AuthenticationFailed):
                await door.later("!bad_token", "token", f"[2001:db8::{number:x}]")
    assert door.failures("20010db800000000") == 8
