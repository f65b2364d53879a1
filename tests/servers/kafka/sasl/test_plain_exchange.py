from __future__ import annotations

import pytest

from broker_core.servers.kafka.sasl.mechanisms import Accepted, SaslRefused, exchange_of
from broker_core.service import Logins
from tests.support.kafka_logins import attempt_of_kafka


async def step(logins: Logins, token: bytes) -> Accepted:
    done = await exchange_of("PLAIN", logins, attempt_of_kafka())(token)
    assert isinstance(done, Accepted)
    return done


@pytest.mark.parametrize("token", [b"\0alice\0pencil", b"alice\0alice\0pencil"])
async def test_a_name_with_its_password(logins: Logins, token: bytes) -> None:
    assert (await step(logins, token)).admitted.principal.role == "alice"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0pencil2", "Authentication failed: Invalid username or password"),
        (b"\0mallory\0pencil", "Authentication failed: Invalid username or password"),
        (b"mallory\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (
            b"mallory\0alice\0pencil",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0pencil", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0pencil\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 9, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0pencil", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0\xff\0pencil", "Authentication failed: Invalid username or password"),
    ],
)
async def test_kafkas_text_for_a_refusal(logins: Logins, token: bytes, text: str) -> None:
    with pytest.raises(SaslRefused) as refused:
        await step(logins, token)
    assert refused.value.text == text
    assert "pencil" not in str(refused.value.failure)
