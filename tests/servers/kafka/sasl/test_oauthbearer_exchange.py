from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from broker_core.access.authentication import Authenticator
from broker_core.servers.kafka.sasl.mechanisms import Accepted, Exchange, SaslRefused, exchange_of
from broker_core.service import Logins
from broker_core.settings import AuthenticationSettings
from tests.support.kafka_logins import attempt_of_kafka, logins_of
from tests.support.tokens import SECRET, data_url, token


@pytest.fixture(scope="module")
def logins() -> Iterator[Logins]:
    settings = AuthenticationSettings.model_validate(
        {"methods": ["token"], "token": {"key": data_url(SECRET), "algorithms": ["HS256"]}}
    )
    logins = logins_of(None, Authenticator(settings))
    yield logins
    logins.close()


def exchange(logins: Logins) -> Exchange:
    return exchange_of("OAUTHBEARER", logins, attempt_of_kafka())


def message(subject: str = "alice", *, key: bytes = SECRET, authzid: str = "", extensions: str = "") -> bytes:
    bearer = token({"sub": subject, "exp": time.time() + 3600}, key=key, by="HS256").decode()
    return f"n,{authzid},\x01auth=Bearer {bearer}\x01{extensions}\x01".encode()


@pytest.mark.parametrize("options", [{}, {"authzid": "a=alice"}, {"extensions": "traceId=1\x01"}])
async def test_a_token_is_a_principal_with_an_end(logins: Logins, options: dict[str, str]) -> None:
    done = await exchange(logins)(message(**options))  # type: ignore[arg-type]
    assert isinstance(done, Accepted)
    assert done.admitted.principal.role == "alice"
    assert done.admitted.principal.expires_at is not None
    assert "auth" not in repr(done)


async def test_a_token_that_is_refused_is_told_so_first(logins: Logins) -> None:
    client = exchange(logins)
    assert await client(message(key=bytes(64))) == b'{"status":"invalid_token"}'
    for answer in (b"\x01", message()):  # nobody tries another one
        with pytest.raises(SaslRefused) as refused:
            await client(answer)
        assert refused.value.text == '{"status":"invalid_token"}'
        assert refused.value.failure is None


async def test_another_authorization_id_is_refused(logins: Logins) -> None:
    with pytest.raises(SaslRefused, match="authorization id"):
        await exchange(logins)(message(authzid="a=mallory"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"\xff" * 100,
    ],
)
async def test_what_is_no_token_is_refused(logins: Logins, data: bytes) -> None:
    with pytest.raises(SaslRefused) as refused:
        await exchange(logins)(data)
    assert refused.value.text is None
