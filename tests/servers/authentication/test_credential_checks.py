"""Checks of credentials of many clients at the same time."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from broker_core.access.authentication import AuthenticationFailed
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.concurrency.loop_turn import TURN_SECONDS, has_time
from broker_core.metrics.metrics import Metrics
from broker_core.servers.admission import FailurePace
from broker_core.servers.authentication import CredentialChecks, Expiries
from tests.support.eventually import eventually
from tests.support.scripted_authenticator import ScriptedAuthenticator


def checks() -> tuple[CredentialChecks, ScriptedAuthenticator]:
    authenticator = ScriptedAuthenticator()
    return CredentialChecks("pulsar", authenticator, Metrics(), FailurePace(), Expiries()), authenticator


def count(c: CredentialChecks, outcome: str) -> float | None:
    labels = {"transport": "pulsar", "outcome": outcome}
    return c.metrics.registry.get_sample_value("broker_core_authentications_total", labels)


def peer(host: str = "192.0.2.1", port: int = 1) -> Peer:
    return Peer(f"{host}:{port}", "pulsar")


async def test_clients_without_credentials_are_counted_apart_and_named_by_their_address() -> None:
    authenticator = ScriptedAuthenticator(anonymous_role="guest")
    c = CredentialChecks("pulsar", authenticator, Metrics(), FailurePace(), Expiries())
    assert authenticator.anonymous is not None
    with capture_logs() as logs:
        c.succeeded(authenticator.anonymous, peer(), "v")
        c.succeeded(Principal("guest"), peer("192.0.2.2"), "v")  # it has proven the role
    assert [(line["event"], line["peer"], line["client"]) for line in logs] == [
        ("client without credentials", "192.0.2.1:1", "v")
    ]
    counted = {outcome: count(c, outcome) for outcome in ("anonymous", "ok")}
    assert counted == {"anonymous": 1, "ok": 1}


async def test_a_turn_without_time_checks_nothing() -> None:
    c, authenticator = checks()
    assert c.check_now("token", b"alice", peer()) is not None
    until = asyncio.get_running_loop().time() + 1.1 * TURN_SECONDS
    while asyncio.get_running_loop().time() < until:
        pass
    assert not has_time()
    assert c.check_now("token", b"alice", peer()) is None
    assert len(authenticator.asked) == 1
    principal = await c.check("token", b"alice", peer())
    assert (principal.role, len(authenticator.asked)) == ("alice", 2)
    with pytest.raises(AuthenticationFailed):
        await c.check("token", b"!bad_token", peer())


async def test_one_address_has_few_checks_under_way() -> None:
    c, authenticator = checks()
    tasks = [asyncio.create_task(c.check("slow", b"alice", peer(port=port))) for port in range(100)]
    await eventually(lambda: len(authenticator.asked) == 100)
    await eventually(lambda: authenticator.most == 32)
    other = asyncio.create_task(c.check("slow", b"bob", peer("192.0.2.2")))
    await eventually(lambda: authenticator.most == 33)
    authenticator.gate.set()
    assert {(await task).role for task in tasks} == {"alice"}
    assert (await other).role == "bob"
    assert authenticator.most == 33
    assert not c._lanes, "nothing is kept of an address"


async def test_an_address_that_fails_again_and_again_has_one_check_under_way() -> None:
    c, authenticator = checks()
    with capture_logs():
        for _ in range(20):
            c.failed(AuthenticationFailed("bad_password"), peer(), "client")
    tasks = [asyncio.create_task(c.check("slow", b"alice", peer(port=port))) for port in range(100)]
    await eventually(lambda: authenticator.most == 1)
    await eventually(lambda: len(authenticator.asked) == 100)
    for task in tasks[1:]:
        task.cancel()
    authenticator.gate.set()
    assert (await tasks[0]).role == "alice"
    assert authenticator.most == 1


async def test_a_refusal_is_slowed_where_its_address_fails_again_and_again() -> None:
    c, _ = checks()
    with capture_logs():
        delays = [c.failed(AuthenticationFailed("bad_token"), peer(port=port), "v") for port in range(1000)]
        assert c.failed(AuthenticationFailed("bad_token"), peer("192.0.2.2"), "v") == 0
    assert delays[0] == 0
    assert delays == sorted(delays)
    assert 1.0 < delays[-1] <= 10.0


@pytest.mark.parametrize("reason", ["overloaded", "plugin"])
async def test_nobody_is_slowed_for_a_failure_of_the_server(reason: str) -> None:
    c, _ = checks()
    with capture_logs():
        delays = {c.failed(AuthenticationFailed(reason), peer(), "v") for _ in range(100)}
    assert delays == {0.0}
