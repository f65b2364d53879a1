"""Which request may come next before, during and after SASL, over the handler of one connection without a socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from broker_core.access import clients
from broker_core.access.authentication import Authenticator
from broker_core.access.peer import Peer
from broker_core.kafka.scram.client_exchange import ScramClientExchange
from broker_core.servers.connection import Awaited, Closing
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.callers.client_identities import ClientIdentities
from broker_core.servers.kafka.request_handler import KafkaRequestHandler
from broker_core.servers.kafka.services import ShownNode
from broker_core.service import Logins
from broker_core.service.failure_pace import FailurePace
from broker_core.settings import AuthenticationSettings
from broker_core.wire.kafka import (
    API_VERSIONS,
    CREATE_TOPICS,
    LIST_GROUPS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
    ErrorCode,
    Fields,
    MalformedMessage,
    read_response,
    request_frame,
)
from tests.support.clock import SetClock
from tests.support.kafka_calls import services_of
from tests.support.kafka_logins import ALL, StoredUsersOfTest, kafka_settings, logins_of
from tests.support.tokens import SECRET, data_url, token

PLAIN = b"\0alice\0pencil"
FAILED = "Authentication failed during"
NOT_AGAIN = "requested by client is not supported for re-authentication of mechanism"
SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}


@pytest.fixture
def logins() -> Iterator[Logins]:
    settings = AuthenticationSettings.model_validate(
        {
            "methods": ["token", "tls"],
            "token": {"key": data_url(SECRET), "algorithms": ["HS256"]},
            "proxy_roles": ["proxy"],
        }
    )
    logins = logins_of(StoredUsersOfTest(alice="pencil", proxy="secret"), Authenticator(settings))
    yield logins
    logins.close()


class Client:
    """One connection: requests in, answers and the end out."""

    def __init__(self, logins: Logins, common_name: str | None = None) -> None:
        kafka = kafka_settings(namespaces={"User:alice": "acme/orders"})
        identities = ClientIdentities(kafka, logins.admission, logins)
        services = replace(services_of(), identities=identities)
        self.unasked: list[Any] = []
        peer = Peer("192.0.2.1:1", "kafka", common_name is not None, common_name)
        self.handler = KafkaRequestHandler(
            services,
            HANDLERS,
            peer,
            ShownNode(1, "h", 9),
            lambda: 0.0,
            clients.Client("kafka", ""),
            self.unasked.append,
        )
        self.end: Closing | None = None

    async def send(self, message: bytes) -> bytes:
        """The frame of the answer without its length."""
        done = self.handler.handle(message)
        if isinstance(done, Awaited):
            done = await done.reply()
        if isinstance(done, Closing):
            self.end = done
            return done.last[4:]
        assert isinstance(done, bytes)
        return done[4:]

    async def ask(self, api: Api, version: int, **value: Any) -> Fields:
        return read_response(
            api, version, await self.send(request_frame(api, version, 7, "test", value)[4:])
        )[1]

    async def shake(self, mechanism: str = "PLAIN", version: int = 1) -> Fields:
        return await self.ask(SASL_HANDSHAKE, version, mechanism=mechanism)

    async def authenticate(self, data: bytes, version: int = 2) -> Fields:
        return await self.ask(SASL_AUTHENTICATE, version, auth_bytes=data)

    @property
    def role(self) -> str | None:
        asker = self.handler._asker
        return None if asker is None else asker.role


def bearer(subject: str, lifetime: float) -> bytes:
    text = token({"sub": subject, "exp": time.time() + lifetime}, key=SECRET, by="HS256").decode()
    return f"n,,\x01auth=Bearer {text}\x01\x01".encode()


@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_way_in(logins: Logins, versions: bool, version: int) -> None:
    client = Client(logins)
    if versions:
        assert (await client.ask(API_VERSIONS, 3, **SOFTWARE))["error_code"] == 0
    told = await client.shake()
    assert told == {"error_code": 0, "mechanisms": list(ALL)}
    assert client.handler._splitter.max_size == 512 * 1024
    told = await client.authenticate(PLAIN, version)
    assert told == {"error_code": 0, "error_message": "", "auth_bytes": b"", "session_lifetime_ms": 0}
    assert client.role == "alice"
    assert str(client.handler._namespace) == "acme/orders"
    assert client.handler._splitter.max_size == 16 * 1024 * 1024
    assert (await client.ask(API_VERSIONS, 0))["error_code"] == 0


async def test_bare_tokens_follow_a_handshake_of_version_0(logins: Logins) -> None:
    client, scram = Client(logins), ScramClientExchange("SCRAM-SHA-512", "alice", "pencil")
    await client.shake("SCRAM-SHA-512", 0)
    assert client.handler._splitter.least == 0
    scram.finish(await client.send(scram.final(await client.send(scram.first()))))
    assert client.role == "alice"
    assert (await client.ask(API_VERSIONS, 0))["error_code"] == 0


async def test_a_bare_token_that_is_refused_closes_without_words(logins: Logins) -> None:
    client = Client(logins)
    await client.shake("PLAIN", 0)
    assert await client.send(b"\0alice\0wrong") == b""
    assert client.end is not None
    assert client.end.reason == "authentication"


async def test_an_unknown_mechanism_is_told_which_there_are(logins: Logins) -> None:
    client = Client(logins)
    told = await client.shake("GSSAPI")
    assert told == {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": list(ALL)}
    assert client.end is not None


@pytest.mark.parametrize(
    ("mechanism", "data", "text"),
    [
        ("PLAIN", b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        ("PLAIN", b"\0proxy\0secret", "Invalid roles."),
        (
            "PLAIN",
            b"nothing",
            "Invalid SASL/PLAIN response: expected 3 tokens, got 1",
        ),
        (
            "SCRAM-SHA-256",
            b"nothing",
            f"{FAILED} authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256",
        ),
    ],
)
async def test_a_refusal_has_kafkas_text(logins: Logins, mechanism: str, data: bytes, text: str) -> None:
    client = Client(logins)
    await client.shake(mechanism)
    told = await client.authenticate(data)
    assert (told["error_code"], told["error_message"]) == (ErrorCode.SASL_AUTHENTICATION_FAILED, text)
    assert client.end is not None
    assert client.role is None


@pytest.mark.parametrize("before", [0, 1, 2])
async def test_any_other_request_ends_a_stranger(logins: Logins, before: int) -> None:
    client = Client(logins)
    if before:
        await client.ask(API_VERSIONS, 0)
    if before == 2:
        await client.shake()
    told = await client.ask(LIST_GROUPS, 3)
    assert told["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    assert client.end is not None


async def test_metadata_of_a_stranger_has_no_answer_that_could_be_read_as_no_topics(logins: Logins) -> None:
    client = Client(logins)
    await client.send(request_frame(METADATA, 13, 1, "test", {})[4:])
    assert client.end is not None
    assert (client.end.reason, client.end.last) == ("authentication", b"")


@pytest.mark.parametrize("shaken", [False, True])
async def test_a_second_question_for_versions_ends_a_stranger(logins: Logins, shaken: bool) -> None:
    client = Client(logins)
    await client.ask(API_VERSIONS, 0)
    if shaken:
        await client.shake()
    assert (await client.ask(API_VERSIONS, 0))["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    assert client.end is not None


async def test_a_question_for_unknown_versions_may_be_asked_again(logins: Logins) -> None:
    client = Client(logins)
    message = request_frame(API_VERSIONS, 9, 7, "test", SOFTWARE)[4:]
    told = read_response(API_VERSIONS, 0, await client.send(message))[1]
    assert told["error_code"] == ErrorCode.UNSUPPORTED_VERSION
    assert (await client.ask(API_VERSIONS, 0))["error_code"] == 0
    with pytest.raises(MalformedMessage):
        client.handler.handle(message)


async def test_a_body_of_a_stranger_is_not_read(logins: Logins) -> None:
    client = Client(logins)
    await client.send(request_frame(CREATE_TOPICS, 2, 1, "test", {})[4:18] + b"\x7f\xff\xff\xff")
    assert client.end is not None
    assert client.end.reason == "authentication"


async def test_who_is_let_in_has_no_business_with_sasl(logins: Logins) -> None:
    client = Client(logins)
    await client.shake()
    await client.authenticate(PLAIN)
    assert (await client.shake())["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    told = await client.authenticate(PLAIN)
    assert told["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    assert client.end is None


async def test_a_session_is_renewed_over_its_connection(logins: Logins) -> None:
    client = Client(logins)
    await client.shake("OAUTHBEARER")
    told = await client.authenticate(bearer("alice", 60))
    assert 50_000 < told["session_lifetime_ms"] <= 60_000
    asker = client.handler._asker
    await client.shake("OAUTHBEARER")
    told = await client.authenticate(bearer("alice", 3600))
    assert 3_590_000 < told["session_lifetime_ms"] <= 3_600_000
    assert client.handler._asker is asker
    assert len(logins.admission.live.expiries) == 1
    client.handler.closed()
    assert len(logins.admission.live.expiries) == 0


async def test_only_the_next_step_is_taken_while_a_session_is_renewed(logins: Logins) -> None:
    client = Client(logins)
    await client.shake("OAUTHBEARER")
    await client.authenticate(bearer("alice", 60))
    await client.shake("OAUTHBEARER")
    assert (await client.ask(API_VERSIONS, 0))["error_code"] == ErrorCode.ILLEGAL_SASL_STATE
    assert client.end is not None
    client.handler.closed()


@pytest.mark.parametrize(
    ("mechanism", "data", "text"),
    [
        (
            "OAUTHBEARER",
            bearer("bob", 86_400),  # it is made when the tests are collected
            "Cannot change principals during re-authentication from User.alice: User.bob",
        ),
        (
            "PLAIN",
            PLAIN,
            f"SASL mechanism 'PLAIN' {NOT_AGAIN} 'OAUTHBEARER'",
        ),
        (
            "OAUTHBEARER",
            b"nothing",
            f"{FAILED} re-authentication due to invalid credentials with SASL mechanism OAUTHBEARER",
        ),
    ],
)
async def test_nobody_becomes_another(logins: Logins, mechanism: str, data: bytes, text: str) -> None:
    client = Client(logins)
    await client.shake("OAUTHBEARER")
    await client.authenticate(bearer("alice", 60))
    await client.shake(mechanism)
    told = await client.authenticate(data)
    assert (told["error_code"], told["error_message"]) == (ErrorCode.SASL_AUTHENTICATION_FAILED, text)
    assert client.end is not None
    client.handler.closed()


async def test_a_session_that_is_not_renewed_ends(logins: Logins) -> None:
    client = Client(logins)
    await client.shake("OAUTHBEARER")
    await client.authenticate(bearer("alice", 60))
    expiries = logins.admission.live.expiries
    heap = expiries._heap
    assert len(heap) == 1
    expired = heap[0].expired
    assert expired is not None
    expired()
    assert [each.reason for each in client.unasked] == ["expired"]
    client.handler.closed()
    expiries.close()


async def test_a_certificate_is_an_identity(logins: Logins) -> None:
    client = Client(logins, "alice")
    assert client.role == "alice"
    assert (await client.ask(API_VERSIONS, 0))["error_code"] == 0
    assert str(client.handler._namespace) == "acme/orders"


async def test_who_has_a_certificate_may_prove_another_identity_first(logins: Logins) -> None:
    client = Client(logins, "machine")
    await client.ask(API_VERSIONS, 0)
    await client.shake()
    await client.authenticate(PLAIN)
    assert client.role == "alice"


async def test_a_proxys_certificate_is_none(logins: Logins) -> None:
    assert Client(logins, "proxy").role is None


def test_a_stranger_has_a_minute_whatever_it_says(logins: Logins) -> None:
    client = Client(logins)
    ends = []
    for _ in range(2):
        client.handler.has_received = True
        ends.append(client.handler.tick(quiet=True))
    assert ends[0] is None
    assert isinstance(ends[1], Closing)
    assert ends[1].reason == "handshake"


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        ("PLAIN", b"\0alice\0wrong"),
        ("PLAIN", b"nothing"),
        ("SCRAM-SHA-256", b"nothing"),
        ("OAUTHBEARER", bearer("alice", -60)),
        ("GSSAPI", b""),
    ],
)
async def test_failures_slow_their_address(mechanism: str, data: bytes) -> None:
    logins = logins_of(StoredUsersOfTest(alice="pencil"))
    pace = logins.admission.pace = FailurePace(SetClock())
    for count in range(8):
        client = Client(logins)
        await client.shake(mechanism)
        if data:
            await client.authenticate(data)
        assert pace._failures["192.0.2.1"][0] == count + 1
    assert pace.delay("192.0.2.1") == 0.0
    logins.close()


async def test_an_awaited_check_can_be_given_up(logins: Logins) -> None:
    client = Client(logins)
    await client.shake()
    done = client.handler.handle(request_frame(SASL_AUTHENTICATE, 1, 7, "test", {"auth_bytes": PLAIN})[4:])
    assert isinstance(done, Awaited)
    assert done.holds
    task = asyncio.create_task(done.reply())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.role is None
