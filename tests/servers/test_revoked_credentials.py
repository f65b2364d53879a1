"""Clients of a whole server whose credentials are taken away, over Pulsar's protocol and Kafka's, and the others."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from broker_core.broker import Broker
from broker_core.catalog import ScramRow, SqliteCatalog
from broker_core.kafka.scram.credentials import HASHES, derive_credential
from broker_core.service import live_sessions
from broker_core.settings import AuthenticationSettings, AuthorizationSettings, Settings
from broker_core.wire.kafka import METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, FeatureFlags
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.htpasswd import bcrypt_hash
from tests.support.kafka_logins import ALL
from tests.support.kafka_serving import RawKafkaClient, kafka_broker, raw_client
from tests.support.raw_client import Closed, RawClient
from tests.support.tls_client import TlsClient
from tests.support.tokens import SECRET, token

OTHER = SECRET[::-1]
HASH_OF_ALICE = bcrypt_hash("alice")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_sessions, "_PERIOD", 0.05)


@pytest.fixture
async def broker(quick: None, tmp_path: Path) -> AsyncIterator[Broker]:
    write_files(tmp_path, key=SECRET, bob=True)
    authentication = AuthenticationSettings.model_validate(
        {
            "methods": ["basic", "token"],
            "basic": {"file": tmp_path / "users"},
            "token": {"key": f"file:{tmp_path / 'key'}", "algorithms": ["HS256"]},
        }
    )
    rules = [{"roles": ["*"], "namespaces": ["*/*"], "actions": ["list"]}]
    tables = {
        "authentication": authentication,
        "authorization": AuthorizationSettings.model_validate({"rules": rules}),
    }
    async with kafka_broker(tmp_path, tables=tables, sasl={"mechanisms": ALL}) as broker:
        yield broker


def write_files(folder: Path, *, key: bytes, bob: bool) -> None:
    (folder / "key").write_bytes(key)
    lines = [f"alice:{HASH_OF_ALICE}", *([f"bob:{bcrypt_hash('bob')}"] if bob else [])]
    (folder / "users").write_text("\n".join(lines) + "\n")


def hs256(key: bytes = SECRET) -> str:
    return token({"sub": "alice"}, key=key, by="HS256").decode()


async def pulsar_client(broker: Broker, method: str, data: str, *, refresh: bool = False) -> RawClient:
    client = await RawClient.open(broker.pulsar_address, handshake=False)
    flags = FeatureFlags(supports_auth_refresh=refresh)
    await client.send(
        commands.connect("v", auth_method_name=method, auth_data=data.encode(), feature_flags=flags)
    )
    assert (await client.receive()).type == BaseCommand.CONNECTED
    return client


async def asks(client: RawKafkaClient) -> None:
    told = await client.ask(METADATA, 12, {"topics": []})
    assert told["cluster_id"]


async def logged_in(client: RawKafkaClient, user: str, password: str) -> None:
    assert (await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}))["error_code"] == 0
    told = await client.ask(SASL_AUTHENTICATE, 2, {"auth_bytes": f"\0{user}\0{password}".encode()})
    assert (told["error_code"], told["session_lifetime_ms"]) == (0, 0)


@pytest.fixture
def authorities(tmp_path: Path) -> tuple[Authority, Authority]:
    return Authority(tmp_path, "staying"), Authority(tmp_path, "going")


@pytest.fixture
async def over_tls(
    quick: None, tmp_path: Path, authorities: tuple[Authority, Authority]
) -> AsyncIterator[Broker]:
    """A server of all protocols over TLS, with both authorities of clients."""
    staying, going = authorities
    issued = staying.issue("server")
    (tmp_path / "clients.pem").write_bytes(staying.ca.read_bytes() + going.ca.read_bytes())
    listener = {
        "listen": "127.0.0.1:0",
        "certificate": issued.certificate,
        "key": issued.key,
        "client_ca": tmp_path / "clients.pem",
    }
    plain = {"listen": "127.0.0.1:0", "tls": listener}
    tables = {"authentication": {"methods": ["tls"]}, "authorization": {"super_roles": ["app"]}}
    settings = Settings.model_validate(
        {
            "pulsar": plain,
            "http": plain,
            "kafka": plain,
            "catalog": {"path": tmp_path / "catalog.sqlite"},
            **tables,
        }
    )
    async with Broker(settings) as broker:
        yield broker


def client_context(authority: Authority, ca: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    issued = authority.issue("app")
    context.load_cert_chain(issued.certificate, issued.key)
    return context


async def test_an_authority_that_is_taken_away_ends_its_clients(
    over_tls: Broker, tmp_path: Path, authorities: tuple[Authority, Authority]
) -> None:
    broker, (staying, going) = over_tls, authorities
    assert broker.pulsar_tls_address is not None
    assert broker.kafka_tls_address is not None
    assert broker.https_address is not None
    pulsar, kafka, http = [], [], []
    url = "https://{}:{}/v1/namespaces".format(*broker.https_address)
    async with AsyncExitStack() as stack:
        for authority in (staying, going):
            context = client_context(authority, staying.ca)
            client = await TlsClient.open_tls(broker.pulsar_tls_address, context, handshake=False)
            stack.callback(client.close)
            await client.send(commands.connect("v", auth_method_name="tls"))
            assert (await client.receive()).type == BaseCommand.CONNECTED
            pulsar.append(client)
            reader, writer = await asyncio.open_connection(*broker.kafka_tls_address, ssl=context)
            stack.callback(writer.close)
            kafka.append(RawKafkaClient(reader, writer))
            await asks(kafka[-1])
            connector = aiohttp.TCPConnector(ssl=context)
            http.append(await stack.enter_async_context(aiohttp.ClientSession(connector=connector)))
            async with http[-1].get(url) as response:
                assert response.status == 200
        (tmp_path / "clients.pem").write_text("no certificate")
        await eventually(lambda: "kafka.tls" in broker.reloads.problems)
        for each in pulsar:
            await each.ping()
        (tmp_path / "clients.pem").write_bytes(staying.ca.read_bytes())
        assert await pulsar[1].closed() == []
        assert await kafka[1].message() == b""
        await eventually(lambda: not broker.reloads.problems)
        async with http[1].get(url) as response:
            assert response.status == 401
        await pulsar[0].ping()
        await asks(kafka[0])
        async with http[0].get(url) as response:
            assert response.status == 200


def store(path: Path, user: str, password: str | None) -> None:
    """Give a user a password, or take the user away, as another process does."""
    with SqliteCatalog(path) as other:
        for mechanism in HASHES:
            if password is None:
                other.remove_kafka_user(user, mechanism)
            else:
                made = derive_credential(mechanism, password.encode())
                keys = made.iterations, made.salt, made.stored_key, made.server_key
                other.put_kafka_user(ScramRow(user, mechanism, *keys))


async def test_a_removed_user_of_the_file_ends_over_all_protocols(broker: Broker, tmp_path: Path) -> None:
    assert broker.kafka_address is not None
    alice, bob = [await pulsar_client(broker, "basic", f"{name}:{name}") for name in ("alice", "bob")]
    async with raw_client(broker.kafka_address) as kafka_alice, raw_client(broker.kafka_address) as kafka_bob:
        await logged_in(kafka_alice, "alice", "alice")
        await logged_in(kafka_bob, "bob", "bob")
        write_files(tmp_path, key=SECRET, bob=False)
        assert await bob.closed() == []
        assert await kafka_bob.message() == b""
        await asks(kafka_alice)
        await alice.ping()
    alice.close()
    bob.close()


async def test_a_replaced_key_ends_tokens_and_a_client_with_a_new_one_goes_on(
    broker: Broker, tmp_path: Path
) -> None:
    without = await pulsar_client(broker, "token", hs256())
    renewing = await pulsar_client(broker, "token", hs256(), refresh=True)
    late = await pulsar_client(broker, "token", hs256(), refresh=True)
    by_password = await pulsar_client(broker, "basic", "alice:alice", refresh=True)
    write_files(tmp_path, key=OTHER, bob=True)
    assert await without.closed() == []
    for client, key in ((renewing, OTHER), (late, SECRET)):
        challenge = await client.receive()
        assert challenge.authChallenge.challenge.auth_data == b"PulsarAuthRefresh"
        await client.send(commands.auth_response("v", "token", hs256(key).encode()))
    [error] = await late.closed()
    assert error.error.message == "Failed to authenticate"
    await renewing.ping()
    await by_password.ping()
    for client in (without, renewing, late, by_password):
        client.close()


async def test_users_of_the_catalogue_that_another_process_changes(broker: Broker) -> None:
    assert broker.kafka_address is not None
    assert broker.catalog is not None
    path, names = broker.catalog.path, ("erin", "frank", "grace")
    for name in names:
        await asyncio.to_thread(store, path, name, name)
    async with AsyncExitStack() as stack:
        clients = {}
        for name in names:
            clients[name] = await stack.enter_async_context(raw_client(broker.kafka_address))
            await logged_in(clients[name], name, name)
        await asyncio.to_thread(store, path, "erin", None)
        await asyncio.to_thread(store, path, "frank", "another password")
        assert await clients["erin"].message() == b""
        assert await clients["frank"].message() == b""
        await asks(clients["grace"])


async def test_a_mechanism_that_is_taken_away_ends_its_sessions(quick: None, tmp_path: Path) -> None:
    write_files(tmp_path, key=SECRET, bob=False)
    offered = ["PLAIN", "OAUTHBEARER"]

    def load() -> Settings:
        free = {"listen": "127.0.0.1:0"}
        token = {"key": f"file:{tmp_path / 'key'}", "algorithms": ["HS256"]}
        basic = {"file": tmp_path / "users"}
        return Settings.model_validate(
            {
                "pulsar": free,
                "kafka": {**free, "sasl": {"mechanisms": offered}},
                "catalog": {"path": tmp_path / "catalog.sqlite"},
                "authentication": {"methods": ["basic", "token"], "basic": basic, "token": token},
            }
        )

    async with Broker(load(), load=load) as serving, AsyncExitStack() as stack:
        assert serving.kafka_address is not None
        by_password, by_token, late = [
            await stack.enter_async_context(raw_client(serving.kafka_address)) for _ in range(3)
        ]
        await logged_in(by_password, "alice", "alice")
        assert (await by_token.ask(SASL_HANDSHAKE, 1, {"mechanism": "OAUTHBEARER"}))["error_code"] == 0
        bearer = {"auth_bytes": f"n,,\1auth=Bearer {hs256()}\1\1".encode()}
        assert (await by_token.ask(SASL_AUTHENTICATE, 2, bearer))["error_code"] == 0
        offered.remove("PLAIN")
        assert (await serving.reloads.reload_all()).failed == {}
        assert await by_password.message() == b""
        told = await late.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        assert (told["error_code"], told["mechanisms"]) == (33, ["OAUTHBEARER"])
        await asks(by_token)
        offered.clear()  # nobody is asked for credentials any more
        assert (await serving.reloads.reload_all()).failed == {}
        assert await by_token.message() == b""
        anonymous = await stack.enter_async_context(raw_client(serving.kafka_address))
        await asks(anonymous)
        offered.append("PLAIN")
        assert (await serving.reloads.reload_all()).failed == {}
        assert await anonymous.message() == b""


async def test_kafka_python_with_scram_learns_that_its_user_is_gone(broker: Broker) -> None:
    assert broker.kafka_address is not None
    assert broker.catalog is not None
    path = broker.catalog.path
    for name in ("erin", "frank"):
        await asyncio.to_thread(store, path, name, name)

    def client(name: str) -> KafkaAdminClient:
        assert broker.kafka_address is not None
        return KafkaAdminClient(
            bootstrap_servers="{}:{}".format(*broker.kafka_address),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_plain_username=name,
            sasl_plain_password=name,
            bootstrap_timeout_ms=5000,
            request_timeout_ms=5000,
        )

    erin, frank = [await asyncio.to_thread(client, name) for name in ("erin", "frank")]
    assert await asyncio.to_thread(erin.list_topics) == []
    await asyncio.to_thread(store, path, "erin", None)

    async def refused() -> bool:
        try:
            await asyncio.to_thread(erin.list_topics)
        except KafkaError:
            return True
        return False

    await eventually(refused)
    assert await asyncio.to_thread(frank.list_topics) == []
    for each in (erin, frank):
        await asyncio.to_thread(each.close)


async def test_a_request_under_way_is_as_with_expired_credentials(broker: Broker, tmp_path: Path) -> None:
    """Whatever was asked before the end is answered whole, or the connection ends: no half of an answer."""
    bob = await pulsar_client(broker, "basic", "bob:bob")
    write_files(tmp_path, key=SECRET, bob=False)
    while True:
        number, question = bob.question("acme/orders")
        try:
            await bob.send(question)
            answer = await bob.receive()
        except (Closed, ConnectionError):
            break
        assert answer.getTopicsOfNamespaceResponse.request_id == number
    bob.close()
