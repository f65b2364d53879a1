"""Settings that change while a server runs: each live one under load, and a wrong file, which changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from pydantic import BaseModel

from broker_core import hookimpl
from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.client import Credentials, LookupSession
from broker_core.names import TopicName
from broker_core.settings import Settings, SettingsError, dotted, live_settings, load_settings
from tests.support.certificates import Authority, Issued
from tests.support.eventually import turns
from tests.support.fake_cluster import FakeCluster
from tests.support.htpasswd import write_htpasswd
from tests.support.plugins import PluginOf
from tests.support.tokens import der, rsa_key, token

NAMES: Final = [f"persistent://a/b/t{number}" for number in range(50)]
_PULSAR: Final = 'listen = "127.0.0.1:0"\n'
_KAFKA: Final = 'listen = "127.0.0.1:0"\n'
_ACCESS: Final = 'path = "access.log"\n'
#: Nodes of Kafka that do not answer, and may be down: tests/test_live_kafka_upstream.py has some that do.
_NODES: Final = 'bootstrap_servers = ["127.0.0.1:1"]\n'
_SECRET: Final = 'password = "data:;base64,c2VjcmV0"\n'
_BEHIND: Final = 'service_url = "ONE"\n'
_TLS: Final = 'ca = "authority.pem"\n'

#: Of each live setting, what its table has besides, and two values.
CASES: Final[dict[str, tuple[str, str, str]]] = {
    "pulsar.drain_delay": (_PULSAR, '"0s"', '"1ms"'),
    "pulsar.drain_timeout": (_PULSAR, '"10s"', '"5s"'),
    "authentication.methods": ("", "[]", '["token"]'),
    "authentication.anonymous_role": ("", '""', '"guest"'),
    "authentication.proxy_roles": ("", "[]", '["proxy"]'),
    "authentication.token.key": ("", '"file:one.key"', '"file:two.key"'),
    "authentication.token.jwks": ("", '""', '"file:two.key"'),
    "authentication.token.algorithms": ("", '["RS256"]', '["RS512"]'),
    "authentication.token.subject_claim": ("", '"sub"', '"role"'),
    "authentication.token.audience": ("", '""', '"here"'),
    "authentication.token.issuer": ("", '""', '"us"'),
    "authentication.token.leeway": ("", '"0s"', '"1s"'),
    "authentication.basic.file": ("", '"one.htpasswd"', '"two.htpasswd"'),
    "authorization.mode": ('super_roles = ["load"]\n', '"auto"', '"rules"'),
    "authorization.super_roles": ("", '["load"]', '["load", "root"]'),
    "authorization.rules": (
        'super_roles = ["load"]\n',
        "[]",
        '[{roles = ["r"], namespaces = ["a/b"], actions = ["list"]}]',
    ),
    "http.most_items": ('listen = "127.0.0.1:0"\n', "1000", "2000"),
    "kafka.namespace": (_KAFKA, '"a/b"', '"a/c"'),
    "kafka.num_partitions": (_KAFKA, "1", "2"),
    "kafka.replication_factor": (_KAFKA, "1", "2"),
    "kafka.replication": (_KAFKA, '"strict"', '"record"'),
    "kafka.namespaces": (_KAFKA, "{}", '{"User:x" = "a/c"}'),
    "kafka.configs": (_KAFKA, "{}", '{"retention.ms" = "1000"}'),
    "kafka.max_request_pagination_size_limit": (_KAFKA, "2000", "10"),
    "kafka.max_request_partition_size_limit": (_KAFKA, "2000", "10"),
    "kafka.sasl.mechanisms": ("", '["PLAIN"]', '["SCRAM-SHA-512"]'),
    "kafka.upstream.bootstrap_servers": ("", '["127.0.0.1:1"]', '["127.0.0.1:1", "localhost:1"]'),
    "kafka.upstream.max_age": (_NODES, '"10s"', '"5s"'),
    "kafka.upstream.ready": (_NODES, "true", "false"),
    "kafka.upstream.timeout": (_NODES, '"10s"', '"5s"'),
    "kafka.upstream.tls.ca": ("", '"authority.pem"', '"copied.pem"'),
    "kafka.upstream.tls.certificate": ('key = "own.key"\n', '"own.pem"', '"both.pem"'),
    "kafka.upstream.tls.key": ('certificate = "own.pem"\n', '"own.key"', '"copied.key"'),
    "kafka.upstream.tls.verify_hostname": ("", "true", "false"),
    "kafka.upstream.sasl.mechanism": (f'user = "u"\n{_SECRET}', '"PLAIN"', '"SCRAM-SHA-256"'),
    "kafka.upstream.sasl.user": (_SECRET, '"one"', '"two"'),
    "kafka.upstream.sasl.password": ('user = "u"\n', '"data:;base64,YQ=="', '"data:;base64,Yg=="'),
    "kafka.upstream.sasl.token": (
        'mechanism = "OAUTHBEARER"\n',
        '"data:;base64,YQ=="',
        '"data:;base64,Yg=="',
    ),
    "catalog.property_keys": ('path = "c.sqlite"\n', "[]", '["region"]'),
    "upstream.service_url": ("", '"ONE"', '"TWO"'),
    "upstream.token": (_BEHIND, '""', '"one"'),
    "upstream.token_command": (_BEHIND, "[]", '["printf", "one"]'),
    "upstream.ready": (_BEHIND, "false", "true"),
    "upstream.admin_url": (_BEHIND, '""', '"http://127.0.0.1:1"'),
    "upstream.snapshots.max_age": ("", '"60s"', '"30s"'),
    "upstream.snapshots.token": ("", '""', '"role"'),
    "upstream.snapshots.token_command": ("", "[]", '["printf", "role"]'),
    "upstream.tls.ca": ("", '"authority.pem"', '"copied.pem"'),
    "upstream.tls.certificate": (_TLS, '""', '"both.pem"'),
    "upstream.tls.key": (f'{_TLS}certificate = "own.pem"\n', '"own.key"', '"copied.key"'),
    "upstream.tls.verify_hostname": (_TLS, "true", "false"),
    "limits.connections": ("", "100", "200"),
    "limits.connections_per_address": ("", "0", "50"),
    "limits.heap_permits": ("", '"0"', '"10MB"'),
    "limits.direct_permits": ("", '"100MB"', '"20MB"'),
    "limits.snapshots": ("", '"10MB"', '"1"'),
    "limits.permit_timeout": ("", '"25s"', '"20s"'),
    "limits.permit_queue": ("", "1000", "500"),
    "limits.concurrent_lookups": ("", "1000", "500"),
    "limits.properties": ("", "64", "32"),
    "limits.property_bytes": ("", '"16KB"', '"8KB"'),
    "quotas": ("", "[]", '[{name = "all", requests = 1000000}]'),
    "log.level": ("", '"info"', '"debug"'),
    "log.format": ("", '"auto"', '"json"'),
    "log.file": ("", '""', '"other.log"'),
    "log.access.path": ("", '"access.log"', '"other.log"'),
    "log.access.sample": (_ACCESS, "1.0", "0.5"),
    "log.access.properties": (_ACCESS, "[]", '["team"]'),
}


class Served:
    """A broker of a settings file, and a client that asks all the time."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "broker-core.toml"
        self.answers = 0
        self._broker: Broker | None = None
        self.token = b""
        self._asking: asyncio.Task[None] | None = None

    @property
    def broker(self) -> Broker:
        assert self._broker is not None
        return self._broker

    def write(self, text: str) -> None:
        self.file.write_text(text)

    @contextlib.asynccontextmanager
    async def under_load(self, plugins: Mapping[str, object] | None = None) -> AsyncIterator[Broker]:
        """Serve; whatever the client is answered must be all topics."""

        def load() -> Settings:
            return load_settings(self.file, environment={}).settings

        async with Broker(load(), load=load, plugins=plugins) as self._broker:
            host, port = self.broker.pulsar_address
            credentials = Credentials("token", lambda: _data(self.token)) if self.token else None
            async with LookupSession(f"pulsar://{host}:{port}", credentials=credentials) as client:
                asking = self._asking = asyncio.create_task(self._ask(client))
                await self.further()
                yield self.broker
                await self.further()
                asking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asking

    async def _ask(self, client: LookupSession) -> None:
        while True:
            answer = await client.get_topics("a/b")
            assert sorted(answer.topics) == sorted(NAMES)
            self.answers += 1

    @property
    def broken(self) -> bool:
        """Whether the client was answered anything else."""
        return self._asking is not None and self._asking.done()

    async def further(self, answers: int = 3) -> None:
        """Wait for some more answers; without a pause, in which the client would go on asking."""
        until = self.answers + answers
        async with asyncio.timeout(60):
            while self.answers < until and not self.broken:
                await turns()
        assert not self.broken


async def _data(data: bytes) -> bytes:
    return data


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a catalogue, keys and certificates."""
    folder = tmp_path_factory.mktemp("files")
    with SqliteCatalog(folder / "c.sqlite") as catalog:
        for name in NAMES:
            catalog.create(TopicName.parse(name), properties={"region": name[-1]})
    for name, key in (("one", rsa_key()), ("two", rsa_key(1))):
        (folder / f"{name}.key").write_bytes(der(key))
        write_htpasswd(folder / f"{name}.htpasswd", user="password")
    authority = Authority(folder)
    own, _ = authority.issue("own"), authority.issue("server")
    shutil.copy(authority.ca, folder / "copied.pem")
    shutil.copy(own.key, folder / "copied.key")
    (folder / "both.pem").write_bytes(own.certificate.read_bytes() + own.key.read_bytes())
    return folder


@pytest.fixture
def served(files: Path, tmp_path: Path) -> Served:
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    return Served(tmp_path)


@pytest.fixture
async def clusters(path: str, files: Path) -> AsyncIterator[dict[str, str]]:
    """The addresses of clusters that have the same topics, for settings of them: the last one has TLS."""
    if not path.startswith("upstream."):
        yield {}
        return
    server = Issued(files / "server.pem", files / "server.key")
    async with FakeCluster() as one, FakeCluster() as two, FakeCluster(tls=server.server_context()) as tls:
        for cluster in (one, two, tls):
            cluster.topics["a/b"] = list(NAMES)
        yield {"ONE": one.url, "TWO": two.url, "TLS": tls.url}


def _text(path: str, besides: str, value: str) -> str:
    table, _, key = path.rpartition(".")
    tables = {"pulsar": _PULSAR, "catalog": 'path = "c.sqlite"\n'}
    if table.startswith("upstream."):
        tables["upstream"] = _BEHIND.replace("ONE", "TLS" if table == "upstream.tls" else "ONE")
    if table.startswith("kafka."):
        tables["kafka"] = _KAFKA
    if table.startswith("kafka.upstream."):
        tables["kafka.upstream"] = _NODES
    above = "" if table else f"{key} = {value}\n"
    if table:
        tables[table] = f"{besides}{key} = {value}\n"
    return above + "".join(f"[{name}]\n{lines}" for name, lines in tables.items())


def test_each_live_setting_is_changed() -> None:
    live = {dotted(path) for path, is_live in live_settings() if is_live}
    assert set(CASES) == live


@pytest.mark.parametrize("path", CASES)
async def test_each_live_setting_under_load(served: Served, path: str, clusters: dict[str, str]) -> None:
    besides, before, after = CASES[path]
    if path == "authentication.methods":  # the client has the right from the start, and keeps its connection
        signed = 'super_roles = ["load"]\n[authentication.token]\nkey = "file:one.key"\n'
        served.token = token({"sub": "load"})
        texts = [
            _text("authorization.mode", signed.partition("\n")[0] + "\n", '"auto"')
            + f'[authentication]\nmethods = {methods}\n[authentication.token]\nkey = "file:one.key"\n'
            + '[authentication.basic]\nfile = "one.htpasswd"\n'
            for methods in ('["token"]', '["token", "basic"]')
        ]
    else:
        texts = [_text(path, besides, value) for value in (before, after)]
    if path.startswith("authorization.") or path == "authentication.anonymous_role":
        rules = '[authorization]\nsuper_roles = ["load"]\n' if path.startswith("authentication") else ""
        served.token = token({"sub": "load"})
        anonymous = (
            "" if path == "authentication.anonymous_role" else '[authentication]\nmethods = ["token"]\n'
        )
        key = '[authentication.token]\nkey = "file:one.key"\n'
        texts = [
            text.replace("[authentication]\n", '[authentication]\nmethods = ["token"]\n')
            + anonymous
            + key
            + rules
            for text in texts
        ]
    for name, url in clusters.items():
        texts = [text.replace(f'"{name}"', f'"{url}"') for text in texts]
    served.write(texts[0])
    async with served.under_load() as broker:
        served.write(texts[1])
        difference = await broker.reloads.difference()
        assert [dotted(each.path) for each in difference.live] == [path]
        await served.further()
        reloaded = await broker.reloads.reload_all()
        assert reloaded.failed == {}
        assert broker.settings == load_settings(served.file, environment={}).settings
        await served.further()
        assert not (await broker.reloads.difference()).live
        served.write(texts[0])
        assert (await broker.reloads.reload_all()).failed == {}


async def test_wrong_files_change_no_answer_however_often_they_are_read(served: Served) -> None:
    right = _text("log.level", "", '"info"')
    wrong = [
        "[",
        right + "[nothing]\n",
        right + "[limits]\npermit_queue = -1\n",
        right + '[authentication]\nmethods = ["token"]\n',
    ]
    served.write(right)
    async with served.under_load() as broker:
        before = broker.settings
        for turn in range(40):
            served.write(wrong[turn % len(wrong)])
            with pytest.raises(SettingsError):
                await broker.reloads.difference()
            assert (await broker.reloads.reload_all()).failed.keys() == {"settings"}
        assert broker.settings is before
        assert broker.reloads.failing == {"settings": True}
        served.write(right)
        assert (await broker.reloads.reload_all()).failed == {}
        assert broker.reloads.failing == {"settings": False}


async def test_rules_bind_at_once_and_what_needs_a_restart_is_named(served: Served) -> None:
    served.token = token({"sub": "load"})
    who = '[authentication]\nmethods = ["token"]\n[authentication.token]\nkey = "file:one.key"\n'
    served.write(_text("authorization.super_roles", "", '["load"]') + who)
    async with served.under_load() as broker:
        host, port = broker.pulsar_address
        other = Credentials("token", partial(_data, token({"sub": "other"})))
        async with LookupSession(f"pulsar://{host}:{port}", credentials=other) as client:
            for roles, allowed in (('["load", "other"]', True), ('["load"]', False)):
                served.write(_text("authorization.super_roles", "", roles) + who + "[watchers]\nmost = 1\n")
                reloaded = await broker.reloads.reload_all()
                assert reloaded.settings is not None
                assert [dotted(each.path) for each in reloaded.settings.restart] == ["watchers.most"]
                assert broker.settings.watchers.most == 100_000
                with (
                    contextlib.nullcontext()
                    if allowed
                    else pytest.raises(Exception, match="no right to list")
                ):
                    await client.get_topics("a/b")


async def test_other_property_keys_select_at_once(served: Served) -> None:
    texts = [_text("catalog.property_keys", 'path = "c.sqlite"\n', keys) for keys in ("[]", '["region"]')]
    served.write(texts[0])
    async with served.under_load() as broker:
        host, port = broker.pulsar_address
        async with LookupSession(f"pulsar://{host}:{port}") as client:

            async def selected() -> Any:
                return len((await client.get_topics("a/b", properties={"region": "7"})).topics)

            for text, expected in ((texts[0], 50), (texts[1], 5), (texts[0], 50)):
                served.write(text)
                await broker.reloads.reload_all()
                assert await selected() == expected


class Own(BaseModel):
    live: ClassVar = frozenset({"most", "deadline"})

    most: int = 1
    url: str = "here"


class Following:
    """A plugin that has live settings, and what became of them. ``fails``: at which of its calls."""

    def __init__(self, fails: str = "") -> None:
        self.calls: list[int] = []
        self.in_force: list[int] = []
        self.fails = fails

    @hookimpl
    def broker_core_settings(self) -> type[Own]:
        return Own

    @hookimpl
    async def broker_core_reloaded(self, settings: Own) -> Callable[[], None]:
        self.calls.append(settings.most)
        if self.fails == "hook":
            raise OSError("no such place")

        def put_in_force() -> None:
            if self.fails == "function":
                raise OSError("no such place")
            self.in_force.append(settings.most)

        return put_in_force


async def test_a_plugin_follows_its_live_settings_and_any_other_needs_a_restart(served: Served) -> None:
    following, other = Following(), PluginOf(settings=lambda: Own)
    base = _text("log.level", "", '"info"')
    served.write(base)
    async with served.under_load({"with": following, "without": other}) as broker:
        tables = '[plugins.with]\nmost = 2\nurl = "there"\ndeadline = "9s"\n[plugins.without]\nmost = 2\n'
        served.write(base + tables)
        assert [dotted(each.path) for each in (await broker.reloads.difference()).live] == [
            "plugins.with.deadline",
            "plugins.with.most",
        ]
        assert (following.calls, following.in_force) == ([2], [])
        reloaded = (await broker.reloads.reload_all()).settings
        assert reloaded is not None
        restart = [dotted(each.path) for each in reloaded.restart]
        assert restart == ["plugins.with.url", "plugins.without.most"]
        assert (following.calls, following.in_force) == ([2, 2], [2])
        options = broker.pipeline.dispatcher.registry["with"].options
        assert (options.deadline, options.settings) == (9.0, Own(most=2))
        served.write(base + tables.replace('"there"', '"elsewhere"'))  # nothing that is live
        assert (await broker.reloads.reload_all()).failed == {}
        assert following.in_force == [2]


@pytest.mark.parametrize(
    ("fails", "table", "why"),
    [
        ("hook", "most = 2\n", "plugin 'q' refuses its settings: OSError: no such place"),
        ("", 'most = "x"\n', "plugin 'q' cannot use its settings: plugins.q.most: "),
        ("", "[plugins.r]\nurl = 1\n", "plugin 'r' cannot use its settings: plugins.r.url: "),
    ],
)
async def test_settings_that_one_plugin_refuses_change_nothing(
    served: Served, fails: str, table: str, why: str
) -> None:
    first, second = Following(), Following(fails)
    base = _text("limits.permit_queue", "", "1000")
    served.write(base)
    plugins = {"p": first, "q": second, "r": PluginOf(settings=lambda: Own)}
    async with served.under_load(plugins) as broker:
        before = broker.settings
        changed = _text("limits.permit_queue", "", "500") + "[plugins.p]\nmost = 2\n[plugins.q]\n" + table
        served.write(changed)
        with pytest.raises(SettingsError, match=re.escape(why)):
            await broker.reloads.difference()
        assert (await broker.reloads.reload_all()).failed["settings"].startswith(why)
        assert broker.settings is before
        assert (first.in_force, second.in_force) == ([], [])
        assert broker.pipeline.dispatcher.registry["p"].options.settings == Own()


async def test_a_plugin_that_fails_to_put_its_settings_in_force_is_shown(served: Served) -> None:
    failing, following = Following("function"), Following()
    base = _text("log.level", "", '"info"')
    served.write(base)
    async with served.under_load({"p": failing, "q": following}) as broker:
        served.write(base + "[plugins.p]\nmost = 2\n[plugins.q]\nmost = 2\n")
        assert (await broker.reloads.reload_all()).failed == {}
        assert following.in_force == [2]
        state = broker.pipeline.dispatcher.describe()[0]
        assert state["problems"] == ["failed to put its settings in force (OSError): restart the server"]
        failing.fails = ""
        served.write(base + "[plugins.p]\nmost = 3\n")
        await broker.reloads.reload_all()
        assert broker.pipeline.dispatcher.describe()[0]["problems"] == []
