"""The mechanisms of SASL, token by token, and their needs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from broker_core.access.authentication import AuthenticationFailed, Authenticator
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.kafka.scram.client_exchange import ScramClientExchange
from broker_core.kafka.scram.credentials import HASHES
from broker_core.servers.kafka.sasl.mechanisms import (
    Accepted,
    Exchange,
    MechanismUnusable,
    SaslRefused,
    check_mechanisms,
    exchange_of,
)
from broker_core.service import Admitted, LoginAttempt, Logins
from broker_core.settings import AuthenticationSettings, KafkaMechanism
from tests.support.kafka_logins import ALL, attempt_of_kafka, logins_of
from tests.support.tokens import SECRET, data_url, token


def test_an_end_shows_no_secret() -> None:
    attempt = LoginAttempt(Peer("h:1", "kafka"), "", "basic", b"alice:token", stored=frozenset({b"token"}))
    assert "token" not in repr(Accepted(Admitted(Principal("alice"), "alice", None, attempt), b"token"))


def test_a_refusal_has_a_text() -> None:
    assert str(SaslRefused(AuthenticationFailed("bad_password"))) == "bad_password"
    assert str(SaslRefused(None, "no")) == "no"


def test_with_a_catalogue_and_tokens_all_can_be_used() -> None:
    check_mechanisms(ALL, lambda method: method == "token", has_users=True)


def test_before_a_cluster_passwords_and_tokens_can_be_used() -> None:
    check_mechanisms(("PLAIN", "OAUTHBEARER"), lambda _: True, has_users=False)


@pytest.mark.parametrize(
    ("mechanism", "missing"),
    [
        ("OAUTHBEARER", "'token' in authentication.methods"),
        ("PLAIN", "'basic' in authentication.methods"),
        ("SCRAM-SHA-256", "users are in the embedded catalogue"),
        ("SCRAM-SHA-512", "users are in the embedded catalogue"),
    ],
)
def test_what_is_missing_is_named(mechanism: KafkaMechanism, missing: str) -> None:
    with pytest.raises(MechanismUnusable, match=missing) as unusable:
        check_mechanisms((mechanism,), lambda _: False, has_users=False)
    assert str(unusable.value).startswith(f"kafka.sasl.mechanisms: '{mechanism}'")


async def plain(logins: Logins, token: bytes) -> Accepted:
    done = await exchange_of("PLAIN", logins, attempt_of_kafka())(token)
    assert isinstance(done, Accepted)
    return done


@pytest.mark.parametrize("token", [b"\0alice\0pencil", b"alice\0alice\0pencil"])
async def test_a_name_with_its_password(logins: Logins, token: bytes) -> None:
    assert (await plain(logins, token)).admitted.principal.role == "alice"


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
        await plain(logins, token)
    assert refused.value.text == text
    assert "pencil" not in str(refused.value.failure)


@pytest.fixture(scope="module")
def token_logins() -> Iterator[Logins]:
    settings = AuthenticationSettings.model_validate(
        {"methods": ["token"], "token": {"key": data_url(SECRET), "algorithms": ["HS256"]}}
    )
    logins = logins_of(None, Authenticator(settings))
    yield logins
    logins.close()


def oauthbearer(token_logins: Logins) -> Exchange:
    return exchange_of("OAUTHBEARER", token_logins, attempt_of_kafka())


def message(subject: str = "alice", *, key: bytes = SECRET, authzid: str = "", extensions: str = "") -> bytes:
    bearer = token({"sub": subject, "exp": time.time() + 3600}, key=key, by="HS256").decode()
    return f"n,{authzid},\x01auth=Bearer {bearer}\x01{extensions}\x01".encode()


@pytest.mark.parametrize("options", [{}, {"authzid": "a=alice"}, {"extensions": "traceId=1\x01"}])
async def test_a_token_is_a_principal_with_an_end(token_logins: Logins, options: dict[str, str]) -> None:
    done = await oauthbearer(token_logins)(message(**options))  # type: ignore[arg-type]
    assert isinstance(done, Accepted)
    assert done.admitted.principal.role == "alice"
    assert done.admitted.principal.expires_at is not None
    assert "auth" not in repr(done)


async def test_a_token_that_is_refused_is_told_so_first(token_logins: Logins) -> None:
    client = oauthbearer(token_logins)
    assert await client(message(key=bytes(64))) == b'{"status":"invalid_token"}'
    for answer in (b"\x01", message()):  # nobody tries another one
        with pytest.raises(SaslRefused) as refused:
            await client(answer)
        assert refused.value.text == '{"status":"invalid_token"}'
        assert refused.value.failure is None


async def test_another_authorization_id_is_refused(token_logins: Logins) -> None:
    with pytest.raises(SaslRefused, match="authorization id"):
        await oauthbearer(token_logins)(message(authzid="a=mallory"))


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
async def test_what_is_no_token_is_refused(token_logins: Logins, data: bytes) -> None:
    with pytest.raises(SaslRefused) as refused:
        await oauthbearer(token_logins)(data)
    assert refused.value.text is None


def scram(logins: Logins, mechanism: str = "SCRAM-SHA-256") -> Exchange:
    return exchange_of(mechanism, logins, attempt_of_kafka())


@pytest.mark.parametrize("mechanism", HASHES)
async def test_a_user_gets_in(logins: Logins, mechanism: str) -> None:
    client, server = ScramClientExchange(mechanism, "alice", "pencil"), scram(logins, mechanism)
    first = await server(client.first())
    assert isinstance(first, bytes)
    done = await server(client.final(first))
    assert isinstance(done, Accepted)
    client.finish(done.token)
    assert done.admitted.principal.role == "alice"


@pytest.mark.parametrize("user", ["alice", "mallory"])
async def test_a_wrong_password_and_no_user_are_refused_at_the_same_step(logins: Logins, user: str) -> None:
    client, server = ScramClientExchange("SCRAM-SHA-256", user, "wrong"), scram(logins)
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
        first = await scram(logins)(b"n,,n=mallory,r=abc")
        assert isinstance(first, bytes)
        salts.add(first.split(b",")[1])
    assert len(salts) == 1


@pytest.mark.parametrize("token", [b"", b"n,,n=,r=abc", b"\xff", b"n,a=bob,n=alice,r=abc"])
async def test_what_begins_no_exchange_is_refused(logins: Logins, token: bytes) -> None:
    with pytest.raises(SaslRefused):
        await scram(logins)(token)
