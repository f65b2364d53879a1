"""Kafka clients that authenticate, over sockets: kafka-python by each mechanism, with and without TLS, and raw ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from kafka.admin import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider
from structlog.testing import capture_logs

from broker_core.broker import Broker
from broker_core.catalog import ScramRow
from broker_core.client import ClientTls, TlsFailed
from broker_core.client.kafka import AdminClient
from broker_core.kafka.scram.credentials import HASHES, derive_credential
from broker_core.names import TopicName
from broker_core.quantities import ListenAddress
from broker_core.settings import AuthenticationSettings, AuthorizationSettings, KafkaTlsSettings
from broker_core.wire.kafka import METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE, ErrorCode
from tests.support.certificates import Authority
from tests.support.htpasswd import write_htpasswd
from tests.support.kafka_logins import ALL
from tests.support.kafka_serving import RawKafkaClient, kafka_broker, raw_client
from tests.support.tokens import SECRET, data_url, token

pytestmark = pytest.mark.asyncio(loop_scope="module")

#: Passwords, and whose namespaces they open.
PASSWORDS = {"orders-app": "pencil-of-orders", "stranger": "pencil-of-stranger"}


@dataclass
class Scene:
    broker: Broker
    authority: Authority

    @property
    def plain(self) -> str:
        assert self.broker.kafka_address is not None
        return "{}:{}".format(*self.broker.kafka_address)

    @property
    def tls(self) -> str:
        assert self.broker.kafka_tls_address is not None
        return "{}:{}".format(*self.broker.kafka_tls_address)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("kafka")
    authority = Authority(folder)
    issued = authority.issue("server")
    tables = {
        "authentication": AuthenticationSettings.model_validate(
            {
                "methods": ["token", "basic", "tls"],
                "token": {"key": data_url(SECRET), "algorithms": ["HS256"]},
                "basic": {"file": write_htpasswd(folder / "htpasswd", **{"of-file": "pencil-of-file"})},
            }
        ),
        "authorization": AuthorizationSettings.model_validate(
            {
                "rules": [
                    {"roles": ["orders-app", "of-file"], "namespaces": ["acme/orders"], "actions": ["list"]},
                ]
            }
        ),
    }
    tls = KafkaTlsSettings(
        listen=ListenAddress("127.0.0.1", 0),
        certificate=issued.certificate,
        key=issued.key,
        client_ca=authority.ca,
    )
    kafka: dict[str, Any] = {
        "tls": tls,
        "sasl": {"mechanisms": ALL},
        "namespaces": dict.fromkeys(("User:orders-app", "User:stranger", "User:of-file"), "acme/orders"),
    }
    async with kafka_broker(folder, tables=tables, **kafka) as broker:
        catalog = broker.catalog
        assert catalog is not None
        for name, password in PASSWORDS.items():
            for mechanism in HASHES:
                made = derive_credential(mechanism, password.encode())
                row = ScramRow(name, mechanism, made.iterations, made.salt, made.stored_key, made.server_key)
                await asyncio.to_thread(catalog.put_kafka_user, row)
        await asyncio.to_thread(
            catalog.create, TopicName.parse("persistent://acme/orders/placed"), partitions=3
        )
        await asyncio.to_thread(
            catalog.create, TopicName.parse("persistent://public/default/other"), partitions=1
        )
        yield Scene(broker, authority)


class Token(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, subject: str) -> None:
        self.text = token({"sub": subject, "exp": time.time() + 3600}, key=SECRET, by="HS256").decode()

    def token(self) -> str:
        return self.text


def listed(address: str, **options: Any) -> list[str]:
    """The topics that kafka-python lists."""
    client = KafkaAdminClient(bootstrap_servers=address, bootstrap_timeout_ms=5000, **options)
    try:
        names: list[str] = client.list_topics()
        return names
    finally:
        client.close()


@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize("encrypted", [False, True])
async def test_kafka_python_lists_the_namespace_of_its_principal(
    scene: Scene, mechanism: str, encrypted: bool
) -> None:
    options: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = Token("orders-app")
    else:
        options |= {
            "sasl_plain_username": "orders-app",
            "sasl_plain_password": PASSWORDS["orders-app"],
        }
    if encrypted:
        options |= {"security_protocol": "SASL_SSL", "ssl_cafile": str(scene.authority.ca)}
    else:
        options["security_protocol"] = "SASL_PLAINTEXT"
    address = scene.tls if encrypted else scene.plain
    assert await asyncio.to_thread(listed, address, **options) == ["placed"]


async def test_kafka_python_lists_by_its_certificate(scene: Scene) -> None:
    issued = scene.authority.issue("orders-app")
    options = {
        "security_protocol": "SSL",
        "ssl_cafile": str(scene.authority.ca),
        "ssl_certfile": str(issued.certificate),
        "ssl_keyfile": str(issued.key),
    }
    assert await asyncio.to_thread(listed, scene.tls, **options) == ["placed"]


@pytest.mark.parametrize(("kind", "told"), [("expired", "CERTIFICATE_EXPIRED"), ("strange", "UNKNOWN_CA")])
async def test_a_refused_certificate_is_told_at_once(
    scene: Scene, tmp_path: Path, kind: str, told: str
) -> None:
    authority = Authority(tmp_path, "other") if kind == "strange" else scene.authority
    issued = authority.issue(f"{kind}-app", expired=kind == "expired")
    tls = ClientTls(scene.authority.ca, issued.certificate, issued.key)
    async with AdminClient(scene.tls, tls=tls) as client:
        with pytest.raises(TlsFailed, match=told):
            await client.list_topics()


async def authenticated(client: RawKafkaClient, token: bytes, mechanism: str = "PLAIN") -> dict[str, Any]:
    told = await client.ask(SASL_HANDSHAKE, 1, {"mechanism": mechanism})
    assert told["error_code"] == 0
    return await client.ask(SASL_AUTHENTICATE, 2, {"auth_bytes": token})


async def test_a_password_of_the_file_is_good_too(scene: Scene) -> None:
    assert scene.broker.kafka_address is not None
    async with raw_client(scene.broker.kafka_address) as client:
        assert (await authenticated(client, b"\0of-file\0pencil-of-file"))["error_code"] == 0
        answer = await client.ask(METADATA, 12, {"topics": None})
        assert [topic["name"] for topic in answer["topics"]] == ["placed"]


async def test_a_listing_that_the_rules_deny_has_no_answer(scene: Scene) -> None:
    assert scene.broker.kafka_address is not None
    async with raw_client(scene.broker.kafka_address) as client:
        assert (await authenticated(client, b"\0stranger\0pencil-of-stranger"))["error_code"] == 0
        client.send(METADATA, 12, {"topics": None})
        assert await client.message() == b""


async def test_a_refusal_is_the_last_answer_and_shows_no_secret(scene: Scene) -> None:
    assert scene.broker.kafka_address is not None
    with capture_logs() as logs:
        for user, password in (("orders-app", b"wr0ng-secret"), ("nobody", b"wr0ng-secret")):
            async with raw_client(scene.broker.kafka_address) as client:
                told = await authenticated(client, b"\0%b\0%b" % (user.encode(), password))
                assert told["error_code"] == ErrorCode.SASL_AUTHENTICATION_FAILED
                assert told["error_message"] == "Authentication failed: Invalid username or password"
                assert await client.message() == b""
    said = str(logs)
    assert [line["reason"] for line in logs if line["event"] == "authentication failed"] == [
        "bad_password"
    ] * 2
    assert not any(secret in said for secret in ("wr0ng-secret", "nobody", *PASSWORDS.values()))


async def test_a_stranger_gets_nothing_else(scene: Scene) -> None:
    assert scene.broker.kafka_address is not None
    large = (512 * 1024 + 1).to_bytes(4, "big")
    async with raw_client(scene.broker.kafka_address) as client:
        client.send(METADATA, 12, {"topics": None})
        assert await client.message() == b""
    async with raw_client(scene.broker.kafka_address) as client:
        client.writer.write(large)
        assert await client.message() == b""
    async with raw_client(scene.broker.kafka_address) as client:
        await authenticated(client, b"\0of-file\0pencil-of-file")
        client.writer.write(large + bytes(8))
        client.writer.write_eof()
        assert await client.message() == b""


async def test_tls_without_a_certificate_still_needs_sasl(scene: Scene) -> None:
    assert scene.broker.kafka_tls_address is not None
    import ssl

    context = ssl.create_default_context(cafile=scene.authority.ca)
    reader, writer = await asyncio.open_connection(
        *scene.broker.kafka_tls_address, ssl=context, server_hostname="localhost"
    )
    client = RawKafkaClient(reader, writer)
    client.send(METADATA, 12, {"topics": None})
    assert await client.message() == b""
    writer.close()
