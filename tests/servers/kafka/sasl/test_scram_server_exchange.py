from __future__ import annotations

import pytest

from broker_core.kafka.scram.client_exchange import ScramClientExchange
from broker_core.kafka.scram.credentials import HASHES
from broker_core.servers.kafka.sasl.mechanisms import Accepted, Exchange, SaslRefused, exchange_of
from broker_core.service import Logins
from tests.support.kafka_logins import attempt_of_kafka


def exchange(logins: Logins, mechanism: str = "SCRAM-SHA-256") -> Exchange:
    return exchange_of(mechanism, logins, attempt_of_kafka())


@pytest.mark.parametrize("mechanism", HASHES)
async def test_a_user_gets_in(logins: Logins, mechanism: str) -> None:
    client, server = ScramClientExchange(mechanism, "alice", "pencil"), exchange(logins, mechanism)
    first = await server(client.first())
    assert isinstance(first, bytes)
    done = await server(client.final(first))
    assert isinstance(done, Accepted)
    client.finish(done.token)
    assert done.admitted.principal.role == "alice"


@pytest.mark.parametrize("user", ["alice", "mallory"])
async def test_a_wrong_password_and_no_user_are_refused_at_the_same_step(logins: Logins, user: str) -> None:
    client, server = ScramClientExchange("SCRAM-SHA-256", user, "wrong"), exchange(logins)
    first = await server(client.first())
    assert isinstance(first, bytes)
    assert first.endswith(b",i=8192")
    with pytest.raises(SaslRefused) as refused:
        await server(client.final(first))
    assert refused.value.text is None
    assert str(refused.value.failure) == "bad_password: the proof is wrong"


async def test_the_salt_of_nobody_is_the_same_each_time(logins: Logins) -> None:
    salts = set()
    for _ in range(3):
        first = await exchange(logins)(b"n,,n=mallory,r=abc")
        assert isinstance(first, bytes)
        salts.add(first.split(b",")[1])
    assert len(salts) == 1


@pytest.mark.parametrize("token", [b"", b"n,,n=,r=abc", b"\xff", b"n,a=bob,n=alice,r=abc"])
async def test_what_begins_no_exchange_is_refused(logins: Logins, token: bytes) -> None:
    with pytest.raises(SaslRefused):
        await exchange(logins)(token)
