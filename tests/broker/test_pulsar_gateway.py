"""The cluster behind a gateway: credentials are kept if they are passed on, and another one takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from prometheus_client import generate_latest

from broker_core.access.connection_credentials import Sessions
from broker_core.broker import Broker
from broker_core.broker.pulsar_gateway import Gateway
from broker_core.change_log import Gap
from broker_core.client import Credentials, LookupSession, ServerRefused
from broker_core.errors import ServerError
from broker_core.guards import ShrinkGuard
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.names import Mode, NamespaceName
from broker_core.reloads.sighup_reloads import Reloaded
from broker_core.settings import Settings, ShrinkGuardSettings, load_settings
from broker_core.snapshots.stored import stored_snapshots
from broker_core.upstream.snapshots import live_snapshots, stored_live_snapshots
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.admin_server import AdminServer
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster
from tests.support.files import file_with
from tests.support.narrowed import of_type, present
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, ScriptedServer
from tests.support.tokens import der, rsa_key, token
from tests.support.watching_client import WatchingClient

OLD: Final = [f"persistent://t/n/old-{number:02d}" for number in range(20)]
WATCHES: Final = {"topic_watchers": True, "reconcile": True}
NEW: Final = [f"persistent://t/n/new-{number:02d}" for number in range(30)]


class Changing:
    """A gateway of a settings file that a test writes, and the sessions of its clients."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "broker-core.toml"
        self.rest = ""
        self._broker: Broker | None = None
        self._sessions: dict[str, LookupSession] = {}

    @property
    def broker(self) -> Broker:
        return present(self._broker)

    def write(self, upstream: str, rest: str | None = None) -> None:
        self.rest = self.rest if rest is None else rest
        listens = '[pulsar]\nlisten = "127.0.0.1:0"\n[http]\nlisten = "127.0.0.1:0"\n'
        self.file.write_text(f"{listens}[upstream]\n{upstream}\n{self.rest}")

    def load(self) -> Settings:
        return load_settings(self.file, environment={}).settings

    async def reload(self, upstream: str, rest: str | None = None) -> Reloaded:
        self.write(upstream, rest)
        return await self.broker.reloads.reload_all()

    @asynccontextmanager
    async def serving(self, upstream: str, rest: str = "") -> AsyncIterator[None]:
        self.write(upstream, rest)
        async with Broker(self.load(), load=self.load) as self._broker:
            yield
            for session in self._sessions.values():
                await session.close()
            self._sessions.clear()

    async def session(self, role: str = "") -> LookupSession:
        if role not in self._sessions:
            host, port = self.broker.pulsar_address
            credentials = Credentials("token", partial(_data, token({"sub": role}))) if role else None
            session = LookupSession(f"pulsar://{host}:{port}", credentials=credentials)
            await session.connect()
            self._sessions[role] = session
        return self._sessions[role]

    async def names(self, role: str = "", mode: Mode = Mode.PERSISTENT) -> list[str]:
        return sorted((await (await self.session(role)).get_topics("t/n", mode)).topics)

    async def http(self, path: str) -> tuple[int, Any]:
        url = "http://{}:{}/v1/namespaces/t/n/{}".format(*present(self.broker.http_address), path)
        async with aiohttp.ClientSession() as http, http.get(url) as answer:
            return answer.status, await answer.json()

    async def over_http(self) -> list[str]:
        return sorted((await self.http("topics"))[1]["items"])

    @property
    def metrics(self) -> dict[str, float]:
        lines = generate_latest(self.broker.pipeline.metrics.registry).decode().splitlines()
        return {
            name: float(value)
            for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
        }


@pytest.fixture
def changing(tmp_path: Path) -> Changing:
    return Changing(tmp_path)


async def _data(data: bytes) -> bytes:
    return data


def _url(cluster: FakeCluster, *more: str) -> str:
    return "\n".join([f'service_url = "{cluster.url}"', *more])


@pytest.mark.parametrize("passes_on", [False, True])
async def test_credentials_are_kept_where_they_are_passed_on(passes_on: bool) -> None:
    upstream: dict[str, Any] = {"service_url": "pulsar://127.0.0.1:1"}
    tables: dict[str, Any] = {"upstream": upstream}
    if passes_on:
        upstream["forward"] = "client"
        tables["authentication"] = {"methods": ["basic"], "basic": {"file": "users"}}
    gateway = Gateway(
        Settings.model_validate(tables),
        Metrics(),
        Permits(),
        ShrinkGuard(ShrinkGuardSettings()),
        Sessions(),
        identifies=False,
    )
    assert (gateway.sessions is not None) is passes_on
    assert await gateway.prepare(Settings.model_validate(tables)) is None, "nothing is another one"


@pytest.mark.parametrize("mode", ["auto", "off"])
async def test_another_address_is_in_force_with_the_answer_of_the_reload(
    changing: Changing, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_snapshots, "_PAUSE", 1.0)  # as a server has it
    snapshots = f'[upstream.snapshots]\nmode = "{mode}"\n'
    async with FakeCluster(**WATCHES) as old, FakeCluster(**WATCHES) as new:
        old.topics["t/n"], new.topics["t/n"] = list(OLD), list(NEW)
        async with changing.serving(_url(old), snapshots):
            watcher = await WatchingClient.open(changing.broker.pulsar_address)
            if mode == "auto":
                await watcher.watch(".*", "t/n")
            assert await changing.names() == OLD
            before = changing.metrics
            asking = asyncio.Event()
            wrong: list[list[str]] = []
            acknowledged = False

            async def ask(session: LookupSession) -> None:
                """Ask all the time; what is asked after the reload was acknowledged is answered by the new cluster."""
                while not asking.is_set():
                    was = acknowledged
                    names = sorted((await session.get_topics("t/n")).topics)
                    if names != NEW and (was or names != OLD):
                        wrong.append(names)

            host, port = changing.broker.pulsar_address
            sessions = [LookupSession(f"pulsar://{host}:{port}") for _ in range(2)]
            for session in sessions:
                await session.connect()
            load = [asyncio.create_task(ask(session)) for session in sessions]
            # One question is at the former cluster, which answers it only after the reload.
            old.gate.clear()
            held = LookupSession(f"pulsar://{host}:{port}")
            await held.connect()
            asked = len(old.asked)
            late = asyncio.create_task(held.get_topics("t/n"))
            await eventually(lambda: len(old.asked) > asked)
            reloaded = await changing.reload(_url(new))
            acknowledged = True
            assert reloaded.failed == {}
            assert await changing.over_http() == NEW
            other = LookupSession(f"pulsar://{host}:{port}")
            await other.connect()
            assert sorted((await other.get_topics("t/n")).topics) == NEW
            assert not late.done()
            old.gate.set()
            assert sorted((await late).topics) == OLD, "it was asked before"
            assert sorted((await held.get_topics("t/n")).topics) == NEW
            if mode == "auto":
                await watcher.until(NEW)
            new.change("t/n", new=["persistent://t/n/new-99"])
            if mode == "auto":
                await watcher.until([*NEW, "persistent://t/n/new-99"])
            asking.set()
            await asyncio.gather(*load)
            assert all("persistent://t/n/new-99" in names for names in wrong), "what came after"
            # The former cluster is asked nothing more, and its connections are closed.
            await eventually(lambda: all(peer.task is None or peer.task.done() for peer in old.server.peers))
            after = changing.metrics
            assert f'broker_core_upstream_up{{address="{old.url[9:]}"}}' not in after
            assert after[f'broker_core_upstream_up{{address="{new.url[9:]}"}}'] == 1
            totals = [name for name in before if "upstream" in name and "_total" in name]
            assert totals
            assert all(after[name] >= before[name] for name in totals)
            for session in (*sessions, held, other):
                await session.close()
            watcher.client.close()


async def test_lookups_go_to_the_new_brokers_and_none_is_lost(changing: Changing) -> None:
    gate = asyncio.Event()

    def brokers(partitions: int) -> ScriptedServer:
        async def script(peer: Peer, command: BaseCommand) -> None:
            if command.type == BaseCommand.PARTITIONED_METADATA:
                if partitions == 1:
                    await gate.wait()
                number = command.partitionMetadata.request_id
                peer.send(commands.partitioned_metadata_response(number, partitions))

        return ScriptedServer(script)

    question = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
    question.partitionMetadata.topic = "persistent://t/n/x"

    async def partitions(session: LookupSession) -> int:
        answer = await session.raw(question, timeout=10)
        return answer.partitionMetadataResponse.partitions

    async with brokers(1) as old, brokers(2) as new, changing.serving(f'service_url = "{old.url}"'):
        session = await changing.session()
        waiting = asyncio.create_task(partitions(session))
        await eventually(lambda: any(each.type == BaseCommand.PARTITIONED_METADATA for each in old.received))
        assert (await changing.reload(f'service_url = "{new.url}"')).failed == {}
        assert await partitions(session) == 2, "an equal question that is at the former brokers is not shared"
        gate.set()
        assert await waiting == 1


async def test_versions_of_former_brokers_have_no_changes_at_the_new_ones(changing: Changing) -> None:
    async with FakeCluster() as old, FakeCluster() as new:
        old.topics["t/n"], new.topics["t/n"] = list(OLD), list(NEW)
        async with changing.serving(_url(old)):
            behind = of_type(changing.broker.pipeline.lister, Gateway)
            log = present(behind.log)
            _, first = await changing.http("changes")
            former = await log.version(NamespaceName("t", "n"))
            waiting = asyncio.create_task(changing.http(f"changes?wait=30&since={first['version']}"))
            assert (await changing.reload(_url(new))).failed == {}
            assert (await waiting)[0] == 410
            assert (await changing.http(f"changes?since={first['version']}"))[0] == 410
            assert isinstance(await log.changes(NamespaceName("t", "n"), former), Gap)
            assert await log.catalog_id() != former.catalog_id
            assert log.version_now(NamespaceName("t", "n")) is not None


async def test_other_credentials_are_used_for_new_connections(changing: Changing) -> None:
    async with FakeCluster() as cluster:
        cluster.topics["t/n"] = list(OLD)
        async with changing.serving(_url(cluster, 'token = "first"')):
            assert await changing.names() == OLD
            cluster.topics["t/n"] = list(NEW)
            assert (await changing.reload(_url(cluster, 'token = "second"'))).failed == {}
            assert await changing.names() == NEW, "snapshots are listed again"
            assert [who for who, _ in cluster.asked] == ["first", "second"]
            words = 'token_command = ["printf", "third"]'
            assert (await changing.reload(_url(cluster, words))).failed == {}
            assert await changing.names() == NEW
            own_role = '[upstream.snapshots]\ntoken = "fourth"\n'
            assert (await changing.reload(_url(cluster, words), own_role)).failed == {}
            assert await changing.names() == NEW
            # The role lists, and the cluster is asked whether this client may.
            assert [who for who, _ in cluster.asked[2:]] == ["third", "third", "fourth"]


async def test_how_old_a_snapshot_may_be_and_whether_the_server_is_ready_without_brokers(
    changing: Changing,
) -> None:
    async with FakeCluster() as cluster:  # which tells of nothing by itself
        cluster.topics["t/n"] = list(OLD)
        upstream = _url(cluster)
        async with changing.serving(upstream, '[upstream.snapshots]\nmax_age = "1h"\n'):
            assert await changing.names() == OLD
            cluster.topics["t/n"] = list(NEW)
            assert await changing.names() == OLD
            soon = '[upstream.snapshots]\nmax_age = "1s"\ntoken_command = ["printf", "own"]\n'
            assert (await changing.reload(upstream, soon)).failed == {}
            for names in (NEW, OLD):  # the reload itself may have it listed again, and that once
                cluster.topics["t/n"] = list(names)
                while await changing.names() != names:  # noqa: ASYNC110 - no event tells of an age
                    await asyncio.sleep(0.05)
            assert [who for who, _ in cluster.asked][-1] == "own"
            await cluster.server.stop()

            async def ready() -> str:
                url = "http://{}:{}/-/ready".format(*present(changing.broker.http_address))
                async with aiohttp.ClientSession() as http, http.get(url) as answer:
                    return str((await answer.json())["status"])

            await eventually(lambda: set(_ups(changing)) == {0})
            assert await ready() == "ready"
            assert (await changing.reload(f"{upstream}\nready = true", soon)).failed == {}
            await eventually(lambda: set(_ups(changing)) == {0})
            assert await ready() == "upstream"


def _ups(changing: Changing) -> list[float]:
    return [value for name, value in changing.metrics.items() if name.startswith("broker_core_upstream_up{")]


async def test_topics_that_are_not_persistent_come_from_another_web_service(changing: Changing) -> None:
    async with FakeCluster() as cluster, AdminServer() as web:
        web.namespace("t/n", ["seen"], domain="non-persistent")
        async with changing.serving(_url(cluster)):
            assert await changing.names(mode=Mode.NON_PERSISTENT) == []
            assert (await changing.reload(_url(cluster, f'admin_url = "{web.url}"'))).failed == {}
            assert await changing.names(mode=Mode.NON_PERSISTENT) == ["non-persistent://t/n/seen"]


async def test_other_certificates_and_names_of_hosts(changing: Changing, tmp_path: Path) -> None:
    ours = Authority(tmp_path, "ours")
    for name in ("first", "second"):
        ours.issue(name)
    server = ours.issue("broker", hosts=("elsewhere",))
    async with FakeCluster(tls=server.server_context(ours.ca)) as cluster:
        cluster.topics["t/n"] = list(OLD)

        def tls(name: str, verified: str = "false") -> str:
            files = f'certificate = "{name}.pem"\nkey = "{name}.key"\n'
            return f'[upstream.tls]\nca = "ours.pem"\nverify_hostname = {verified}\n{files}'

        async def asked_as() -> str:
            assert await _once(changing) == OLD
            (name,) = cluster.server.peers[-1].writer.get_extra_info("peercert")["subject"]
            return str(name[0][1])

        async with changing.serving(_url(cluster), tls("first")):
            assert await asked_as() == "first"
            assert (await changing.reload(_url(cluster), tls("second"))).failed == {}
            assert await asked_as() == "second"
            refused = (
                await changing.reload(_url(cluster), tls("second").replace("second.key", "first.key"))
            ).failed
            assert "the key is not the one of the certificate" in refused["settings"]
            refused = (await changing.reload(_url(cluster), tls("second", "true"))).failed
            assert "certificate" in refused["settings"]
            assert await asked_as() == "second"


async def test_authentication_that_is_turned_on_makes_the_brokers_hear_of_each_client(
    changing: Changing,
) -> None:
    async with FakeCluster() as cluster:
        cluster.topics["t/n"] = list(OLD)
        cluster.denied.add("eve")
        upstream = _url(cluster, 'token = "gateway"')
        async with changing.serving(upstream):
            assert await changing.names() == OLD
            file_with(changing.file.parent / "secret.key", der(rsa_key()))
            on = '[authentication]\nmethods = ["token"]\n[authentication.token]\nkey = "file:secret.key"\n'
            on += '[[authorization.rules]]\nroles = ["*"]\nnamespaces = ["*/*"]\nactions = ["list"]\n'
            assert (await changing.reload(upstream, on)).failed == {}
            assert await changing.names("ann") == OLD
            with pytest.raises(ServerRefused) as refused:
                await changing.names("eve")
            assert refused.value.code is ServerError.AuthorizationError
            assert [who for who, _ in cluster.asked] == ["gateway", "ann", "eve"]


async def test_brokers_that_do_not_take_the_gateway_change_nothing(
    changing: Changing, tmp_path: Path
) -> None:
    async with (
        FakeCluster() as cluster,
        ScriptedServer(_refuses, handshake=False) as refusing,
        ScriptedServer(_is_proxy, handshake=False) as proxy,
        FakeCluster(tls=Authority(tmp_path, "one").issue("localhost").server_context()) as secured,
    ):
        cluster.topics["t/n"] = list(OLD)
        Authority(tmp_path, "other")  # which is not that of the brokers
        async with changing.serving(_url(cluster)):
            assert await changing.names() == OLD
            behind = of_type(changing.broker.pipeline.lister, Gateway)
            in_force = behind.cluster
            for upstream, rest, why in (
                (f'service_url = "{refusing.url}"', "", "refuses the credentials of the gateway"),
                (f'service_url = "{proxy.url}"', "", "is a pulsar-proxy"),
                (_url(cluster, 'token = "file:none"'), "", "upstream.token: cannot read"),
                (_url(cluster, 'token_command = ["false"]'), "", "upstream.token_command"),
                (_url(cluster), '[upstream.snapshots]\ntoken = "env:NONE"\n', "upstream.snapshots.token"),
                (_url(secured), '[upstream.tls]\nca = "other.pem"\n', "certificate"),
                (_url(secured), '[upstream.tls]\nca = "none.pem"\n', "cannot read the trusted certificates"),
            ):
                changing.write(upstream, rest)
                reloaded = await changing.broker.reloads.reload_all()
                assert why in reloaded.failed["settings"]
                assert behind.cluster is in_force
                assert await changing.names() == OLD
            # Brokers that are down are no reason: they may come.
            port = free_port()
            assert (await changing.reload(f'service_url = "pulsar://127.0.0.1:{port}"', "")).failed == {}
            with pytest.raises(ServerRefused, match="Cannot list at the brokers"):
                await changing.names()
            late = FakeCluster()
            late.topics["t/n"] = list(NEW)
            await late.server.start(port)
            assert await _once(changing) == NEW
            await late.server.stop()


async def _once(changing: Changing) -> list[str]:
    found: list[str] = []

    async def asked() -> bool:
        try:
            found[:] = await changing.names()
        except ServerRefused:
            return False
        return True

    while not await asked():  # each waits for a connection
        pass
    return found


async def _refuses(peer: Peer, command: BaseCommand) -> None:
    peer.send(commands.error(0, ServerError.AuthenticationError, "Failed to authenticate"))


async def _is_proxy(peer: Peer, command: BaseCommand) -> None:
    if command.type == BaseCommand.CONNECT:
        answer = BaseCommand(type=BaseCommand.CONNECTED)
        answer.connected.server_version = "proxy"
        peer.send(commands.encode(answer))


async def test_reloads_in_a_row_leave_no_cluster_behind(changing: Changing) -> None:
    async with FakeCluster() as one, FakeCluster() as two:
        one.topics["t/n"], two.topics["t/n"] = list(OLD), list(NEW)
        async with changing.serving(_url(one)):
            behind = of_type(changing.broker.pipeline.lister, Gateway)
            for number in range(20):
                cluster, names = ((two, NEW), (one, OLD))[number % 2]
                assert (await changing.reload(_url(cluster))).failed == {}
                assert await changing.names() == names
            await eventually(lambda: len(behind._requests) == 1)
            assert len(behind.cluster.places.evictors) == 3
            await eventually(lambda: all(peer.task is None or peer.task.done() for peer in two.server.peers))
        assert behind.cluster.places.taken == 0


async def test_a_restart_asks_the_brokers_for_what_changed_alone(
    changing: Changing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (stored_snapshots, stored_live_snapshots):
        monkeypatch.setattr(module, "LEAST_TOPICS", 10)
    folder = tmp_path / "listings"
    async with FakeCluster() as cluster:
        cluster.topics["t/n"] = list(OLD)
        told = []
        for _ in range(2):
            async with changing.serving(_url(cluster), f'[upstream.snapshots]\nfolder = "{folder.name}"'):
                assert await changing.names() == OLD
                told.append(changing.metrics['broker_core_stored_snapshots_total{event="read"}'])
            assert list(folder.glob("*.manifest"))
        assert told == [0, 1]
        assert [bool(question.topics_hash) for _, question in cluster.asked] == [False, True]
        async with changing.serving(_url(cluster)):
            assert await changing.names() == OLD
            assert not any("stored_snapshots" in name for name in changing.metrics)
        assert not cluster.asked[-1][1].topics_hash
