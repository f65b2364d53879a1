"""Other settings of [kafka.upstream] while the server runs: what the cluster shows to the former ones is not given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.client import ClientError
from broker_core.client.kafka import AdminClient, NewTopic
from broker_core.names import TopicName
from broker_core.reloads.sighup_reloads import Reloaded
from broker_core.settings import (
    AuthenticationSettings,
    AuthorizationSettings,
    KafkaTlsSettings,
    ListenAddress,
    Settings,
    load_settings,
)
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd
from tests.support.kafka_gateway import address_of
from tests.support.kafka_serving import kafka_broker
from tests.support.ports import free_port
from tests.support.tokens import SECRET, data_url, token

_ROLES: Final = ("one", "two", "three")


class Gateway:
    """A gateway of a settings file that a test writes."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "broker-core.toml"
        self.ports = free_port()
        self._broker: Broker | None = None

    @property
    def broker(self) -> Broker:
        assert self._broker is not None
        return self._broker

    def write(self, upstream: str) -> None:
        listens = "".join(f'[{name}]\nlisten = "127.0.0.1:0"\n' for name in ("pulsar", "http", "kafka"))
        ports = f'namespace = "a/b"\nports = "{self.ports}"\n'
        self.file.write_text(f"{listens}[kafka.upstream]\n{ports}{upstream}")

    def load(self) -> Settings:
        return load_settings(self.file, environment={}).settings

    @asynccontextmanager
    async def serving(self, upstream: str) -> AsyncIterator[None]:
        self.write(upstream)
        async with Broker(self.load(), load=self.load) as self._broker:
            yield

    async def reload(self, upstream: str) -> Reloaded:
        self.write(upstream)
        return await self.broker.reloads.reload_all()

    async def names(self) -> list[str]:
        async with AdminClient(address_of(self.broker), api_timeout=10) as client:
            return (await client.list_topics()).names()


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    (tmp_path / "gateway").mkdir()
    return Gateway(tmp_path / "gateway")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "gateway", "ours")


@pytest.fixture
async def cluster(tmp_path: Path, gateway: Gateway, authority: Authority) -> AsyncIterator[Broker]:
    """A node that shows each of its users another topic, named as the user."""
    with SqliteCatalog(tmp_path / "catalog.sqlite") as catalog:
        for role in _ROLES:
            catalog.create(TopicName.parse(f"persistent://acme/{role}/{role}"))
    passwords = {role: f"password-of-{role}" for role in _ROLES}
    tables = {
        "authentication": AuthenticationSettings.model_validate(
            {
                "methods": ["token", "basic", "tls"],
                "token": {"key": data_url(SECRET), "algorithms": ["HS256"]},
                "basic": {"file": write_htpasswd(tmp_path / "htpasswd", **passwords)},
            }
        ),
        "authorization": AuthorizationSettings(super_roles=_ROLES),
    }
    issued = authority.issue("node")
    tls = KafkaTlsSettings(
        listen=ListenAddress("127.0.0.1", 0),
        certificate=issued.certificate,
        key=issued.key,
        client_ca=authority.ca,
    )
    async with kafka_broker(
        tmp_path,
        node_id=7,
        tables=tables,
        tls=tls,
        sasl={"mechanisms": ["PLAIN", "OAUTHBEARER"]},
        namespaces={f"User:{role}": f"acme/{role}" for role in _ROLES},
    ) as node:
        yield node


def _is_longer(seen: list[list[str]], than: int) -> bool:
    return len(seen) > than


async def test_other_credentials_and_addresses_are_in_force_while_clients_ask(
    gateway: Gateway, cluster: Broker
) -> None:
    port = (cluster.kafka_address or ("", 0))[1]

    def plain(user: str, host: str = "127.0.0.1", password: str = "") -> str:
        secret = data_url((password or f"password-of-{user}").encode())
        return (
            f'bootstrap_servers = ["{host}:{port}"]\n[kafka.upstream.sasl]\nmechanism = "PLAIN"\n'
            f'user = "{user}"\npassword = "{secret}"\n'
        )

    secret = data_url(token({"sub": "three"}, key=SECRET, by="HS256"))
    bearer = (
        f'bootstrap_servers = ["127.0.0.1:{port}"]\n[kafka.upstream.sasl]\nmechanism = "OAUTHBEARER"\n'
        f'token = "{secret}"\n'
    )
    seen: list[list[str]] = []
    done = asyncio.Event()

    async def asking() -> None:
        async with AdminClient(address_of(gateway.broker), api_timeout=10) as client:
            while not done.is_set():
                seen.append((await client.list_topics()).names())
                await client.list_groups()

    async with gateway.serving(plain("one")):
        assert await gateway.names() == ["one"]
        async with asyncio.TaskGroup() as clients:
            for _ in range(4):
                clients.create_task(asking())
            for upstream, shown in (
                (plain("two"), "two"),
                (plain("one", "localhost"), "one"),
                (bearer, "three"),
            ):
                assert (await gateway.reload(upstream)).failed == {}
                assert await gateway.names() == [shown]
                before = len(seen)
                await eventually(partial(_is_longer, seen, before + 8))
                assert seen[before + 8 :] == [[shown]] * len(seen[before + 8 :])
            refused = (await gateway.reload(plain("two", password="wrong"))).failed
            assert "kafka.upstream: " in refused["settings"]
            assert "uthentication" in refused["settings"]
            done.set()
        assert await gateway.names() == ["three"]


async def test_nodes_of_another_cluster_change_nothing(gateway: Gateway, tmp_path: Path) -> None:
    async with kafka_broker(tmp_path / "gateway", node_id=7) as one:
        other_folder = tmp_path / "other"
        other_folder.mkdir()
        async with kafka_broker(other_folder, node_id=8) as other:
            addresses = [address_of(each) for each in (one, other)]
            async with AdminClient(addresses[0]) as client:
                (await client.create_topics([NewTopic("mail")])).all()
            async with gateway.serving(f'bootstrap_servers = ["{addresses[0]}"]\n'):
                assert await gateway.names() == ["mail"]
                refused = await gateway.reload(f'bootstrap_servers = ["{addresses[1]}"]\n')
                assert "another cluster takes a restart" in refused.failed["settings"]
                assert await gateway.names() == ["mail"]
                down = await gateway.reload(
                    f'bootstrap_servers = ["127.0.0.1:{free_port()}", "{addresses[0]}"]\n'
                )
                assert down.failed == {}
                assert await gateway.names() == ["mail"]


async def test_other_certificates_of_the_gateway_and_names_of_nodes(
    gateway: Gateway, cluster: Broker, authority: Authority
) -> None:
    for name in ("one", "two"):
        authority.issue(name)
    host, port = cluster.kafka_tls_address or ("", 0)

    def tls(name: str, ca: str = "ours.pem", verified: str = "true") -> str:
        files = f'certificate = "{name}.pem"\nkey = "{name}.key"\n'
        table = f'[kafka.upstream.tls]\nca = "{ca}"\nverify_hostname = {verified}\n{files}'
        return f'bootstrap_servers = ["{host}:{port}"]\n{table}'

    async with gateway.serving(tls("one")):
        assert await gateway.names() == ["one"]
        assert (await gateway.reload(tls("two", verified="false"))).failed == {}
        assert await gateway.names() == ["two"]
        for wrong in (tls("two").replace("two.key", "one.key"), tls("one", "one.pem")):
            assert "settings" in (await gateway.reload(wrong)).failed
            assert await gateway.names() == ["two"]


async def test_how_old_a_listing_may_be_and_whether_the_server_is_ready_without_nodes(
    gateway: Gateway, tmp_path: Path
) -> None:
    async with kafka_broker(tmp_path / "gateway", node_id=7) as node, AdminClient(address_of(node)) as client:
        upstream = f'bootstrap_servers = ["{address_of(node)}"]\n'
        async with gateway.serving(upstream + 'max_age = "1h"\n'):
            assert await gateway.names() == []
            (await client.create_topics([NewTopic("mail")])).all()
            assert await gateway.names() == []
            soon = upstream + 'max_age = "1s"\n'
            assert (await gateway.reload(soon)).failed == {}
            while await gateway.names() != ["mail"]:  # noqa: ASYNC110 - no event tells of an age
                await asyncio.sleep(0.05)

            async def ready() -> str:
                url = "http://{}:{}/-/ready".format(*(gateway.broker.http_address or ()))
                async with aiohttp.ClientSession() as http, http.get(url) as answer:
                    return str((await answer.json())["status"])

            core = gateway.broker._core
            assert core is not None
            assert core.kafka is not None
            assert (await gateway.reload(soon + 'timeout = "7s"\n')).failed == {}
            assert core.kafka.cluster.options.request_timeout == 7
            await client.close()
            await node.stop()
            with pytest.raises(ClientError):
                await core.kafka.cluster.refresh()
            assert await ready() == "ready"
            assert (await gateway.reload(soon + "ready = true\n")).failed == {}
            assert await ready() == "upstream"
