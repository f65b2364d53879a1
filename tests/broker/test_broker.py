"""A broker from its settings: what it opens, what it refuses at start, and that it closes everything."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import generate_latest
from pydantic import BaseModel
from structlog.testing import capture_logs

from broker_core import ListingRequest, NamespaceName, Principal, TopicListingResult, hookimpl
from broker_core.access.authentication import AuthenticationUnusable
from broker_core.broker import Broker, ListenError
from broker_core.broker.opened_core import opened_pipeline
from broker_core.catalog import CatalogError, SqliteCatalog, move_or_read_snapshot, warm_start
from broker_core.client import ClientError, Credentials, LookupSession, ServerRefused
from broker_core.errors import BrokerCoreError
from broker_core.names import TopicName
from broker_core.patterns import compile_pattern
from broker_core.pipeline import explain
from broker_core.plugin_api.listing_request import ListingRequest as Request
from broker_core.plugins import PluginLoadError
from broker_core.reloads import WatchedFiles
from broker_core.settings import Settings
from broker_core.snapshots.stored import stored_snapshots
from tests.support.catalogue_topics import create_topics
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.narrowed import present
from tests.support.raw_client import RawClient
from tests.support.tokens import der, rsa_key, token

NAMESPACE = NamespaceName("public", "default")
ORDERS = "persistent://public/default/orders"


def settings(folder: Path, **tables: Any) -> Settings:
    base: dict[str, Any] = {
        "pulsar": {"listen": "127.0.0.1:0"},
        "catalog": {"path": folder / "topics.sqlite", "property_keys": ["region"]},
    }
    return Settings.model_validate(base | tables)


def filled(folder: Path) -> None:
    with SqliteCatalog(folder / "topics.sqlite") as catalog:
        catalog.create(TopicName.parse(ORDERS), partitions=2, properties={"region": "eu"})
        catalog.create(TopicName.parse("persistent://public/default/bills"))


def url(broker: Broker) -> str:
    host, port = broker.pulsar_address
    return f"pulsar://{host}:{port}"


@pytest.mark.parametrize("snapshots", ["folder", "off"])
async def test_a_restart_finds_large_namespaces_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshots: str
) -> None:
    monkeypatch.setattr(warm_start, "LEAST_TOPICS", 2)
    monkeypatch.setattr(stored_snapshots, "LEAST_TOPICS", 2)
    monkeypatch.setattr(move_or_read_snapshot, "_FEW", 1)
    filled(tmp_path)
    given = settings(
        tmp_path,
        catalog={"path": tmp_path / "topics.sqlite", "snapshots": snapshots},
        http={"listen": "127.0.0.1:0"},
    )
    answers = []
    for _ in range(2):
        async with Broker(given) as broker:
            # Before anybody asked.
            counts = generate_latest(broker.pipeline.metrics.registry).decode()
            answers.append('broker_core_stored_snapshots_total{event="read"} 1.0' in counts)
            async with LookupSession(url(broker)) as client:
                answer = await client.get_topics("public/default")
                assert len(answer.topics) == 3
    assert answers == [False, snapshots == "folder"]
    assert (tmp_path / "topics.sqlite.snapshots").exists() is (snapshots == "folder")


async def test_serves_the_catalogue_and_its_changes(tmp_path: Path) -> None:
    filled(tmp_path)
    async with Broker(settings(tmp_path)) as broker, LookupSession(url(broker)) as client:
        answer = await client.get_topics("public/default", pattern="public/default/o.*")
        assert answer.topics == [f"{ORDERS}-partition-0", f"{ORDERS}-partition-1"]
        assert answer.filtered
        assert await client.partitioned_metadata(ORDERS) == 2
        create_topics(tmp_path / "topics.sqlite", "persistent://public/default/one-more")
        again = await client.get_topics("public/default", pattern="public/default/o.*")
        assert again.topics == ["persistent://public/default/one-more", *answer.topics]


async def test_questions_that_come_together_and_again_and_again_see_every_change(tmp_path: Path) -> None:
    filled(tmp_path)
    async with Broker(settings(tmp_path)) as broker, await RawClient.open(broker.pulsar_address) as client:
        first = await client.ask()
        with SqliteCatalog(tmp_path / "topics.sqlite") as other:
            for number in range(20):
                other.create(TopicName.parse(f"persistent://public/default/{number}"))
                known = {"topics_hash": first.topics_hash}
                asked = [client.question(**known) for _ in range(2)] + [client.question() for _ in range(2)]
                await client.send(b"".join(frame for _, frame in asked))
                # In no order: the first of them may wait until the change is read, and the others pass it.
                answers = [(await client.receive()).getTopicsOfNamespaceResponse for _ in asked]
                assert {answer.request_id for answer in answers} == {request_id for request_id, _ in asked}
                assert {len(answer.topics) for answer in answers} == {4 + number}
                assert {answer.changed for answer in answers} == {True}
                first = await client.ask()
                unchanged = await client.ask(topics_hash=first.topics_hash)
                assert (len(first.topics), unchanged.changed) == (4 + number, False)


async def test_every_reader_sees_that_the_file_was_replaced(tmp_path: Path) -> None:
    """Without a listing in between: the number of partitions is asked for on its own."""
    filled(tmp_path)
    with SqliteCatalog(tmp_path / "new.sqlite") as other:
        other.create(TopicName.parse(ORDERS), partitions=5)
        other.create(TopicName.parse("persistent://public/default/theirs"), partitions=3)
    async with Broker(settings(tmp_path)) as broker, LookupSession(url(broker)) as client:
        assert await client.partitioned_metadata(ORDERS) == 2
        for end in ("-wal", "-shm"):
            (tmp_path / f"topics.sqlite{end}").unlink(missing_ok=True)
        (tmp_path / "new.sqlite").rename(tmp_path / "topics.sqlite")
        assert await client.partitioned_metadata(ORDERS) == 5
        assert await client.partitioned_metadata("persistent://public/default/theirs") == 3
        answer = await client.get_topics("public/default", pattern="public/default/theirs")
        assert len(answer.topics) == 3
        assert present(broker.catalog).topic(TopicName.parse("persistent://public/default/bills")) is None


async def test_properties_select_by_the_keys_of_the_settings(tmp_path: Path) -> None:
    filled(tmp_path)
    async with Broker(settings(tmp_path)) as broker, LookupSession(url(broker)) as client:
        chosen = await client.get_topics("public/default", properties={"region": "eu", "unrelated": "x"})
        assert chosen.topics == [f"{ORDERS}-partition-0", f"{ORDERS}-partition-1"]
        nothing = await client.get_topics("public/default", properties={"region": "us"})
        assert nothing.topics == []


class OwnKeys(BaseModel):
    property_keys: tuple[str, ...] = ("team",)


class Selecting:
    """Passes everything through; has a key of its own to select by, and fails for an asker that wants it to."""

    @hookimpl
    def broker_core_settings(self) -> type[BaseModel]:
        return OwnKeys

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> None:
        if "fail" in request.properties:
            raise OSError("the text of an error")


async def test_what_was_asked_and_how_plugins_do_are_pages(tmp_path: Path) -> None:
    filled(tmp_path)
    served = settings(tmp_path, http={"listen": "127.0.0.1:0", "questions": True})
    async with (
        Broker(served, plugins={"own-keys": Selecting()}) as broker,
        LookupSession(url(broker)) as client,
        aiohttp.ClientSession() as session,
    ):
        given = {"team": "a", "region": "eu", "secret": "x"}
        for _ in range(2):
            await client.get_topics("public/default", pattern="public/default/o.*", properties=given)
        with pytest.raises(ServerRefused):
            await client.get_topics("public/default", properties={"fail": "now"})
        host, port = present(broker.http_address)
        async with session.get(f"http://{host}:{port}/questions") as answer:
            (line,) = [json.loads(line) for line in (await answer.text()).splitlines()]
        async with session.get(f"http://{host}:{port}/plugins") as answer:
            text = await answer.text()
    assert line.pop("seconds") > 0
    assert datetime.fromisoformat(line.pop("last_asked")) <= datetime.now(UTC)
    assert line == {
        "namespace": "public/default",
        "mode": "PERSISTENT",
        "pattern": "public/default/o.*",
        "properties": {"region": "eu", "team": "a"},
        "count": 2,
        "error": 0,
    }
    (plugin,) = json.loads(text)["plugins"]
    assert plugin["calls"]["list_topics"]["failures"] == {"plugin_error": 1}
    assert (plugin["name"], plugin["on_failure"]) == ("own-keys", "error")
    assert "the text of an error" not in text


async def test_http_is_there_when_it_is_asked_for(tmp_path: Path) -> None:
    async with Broker(settings(tmp_path)) as broker:
        assert broker.http_address is None
    async with (
        Broker(settings(tmp_path, http={"listen": "127.0.0.1:0"})) as broker,
        aiohttp.ClientSession() as session,
    ):
        host, port = present(broker.http_address)
        async with session.get(f"http://{host}:{port}/-/ready") as ready:
            assert ready.status == 200
        async with session.get(f"http://{host}:{port}/metrics") as metrics:
            text = await metrics.text()
    assert "broker_core_connections 0.0" in text
    assert "broker_core_topic_list_heap_memory_limit_bytes 1.048576e+08" in text


@pytest.mark.parametrize("table", ["pulsar", "http", "kafka"])
async def test_an_address_that_is_taken_is_named(tmp_path: Path, table: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        tables = {"pulsar": {"listen": "127.0.0.1:0"}, table: {"listen": address}}
        broker = Broker(settings(tmp_path, **tables))
        with pytest.raises(ListenError, match=f"{table}.listen: cannot listen on {address}: "):
            await broker.start()


async def test_each_address_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        pulsar, http = (f"127.0.0.1:{each.getsockname()[1]}" for each in (one, other))
        tables = {"pulsar": {"listen": pulsar}, "http": {"listen": http}}
        with pytest.raises(ListenError) as raised:
            await Broker(settings(tmp_path, **tables)).start()
    first, second = sorted(str(raised.value).split("; "))
    assert first.startswith(f"http.listen: cannot listen on {http}: ")
    assert second.startswith(f"pulsar.listen: cannot listen on {pulsar}: ")


async def test_a_host_of_another_machine_is_named(tmp_path: Path) -> None:
    with pytest.raises(ListenError, match=r"http\.listen: cannot listen on 203\.0\.113\.1:0: "):
        await Broker(settings(tmp_path, http={"listen": "203.0.113.1:0"})).start()


async def test_a_file_that_is_no_catalogue_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "topics.sqlite").write_bytes(b"something else, and quite a lot of it" * 100)
    with pytest.raises(CatalogError, match=r"topics\.sqlite"):
        await Broker(settings(tmp_path)).start()


class Life:
    """A plugin that writes down its life."""

    def __init__(self, *, fails: bool = False) -> None:
        self.events: list[str] = []
        self.broker: Any = None
        self._fails = fails

    @hookimpl
    async def broker_core_startup(self, broker: Any) -> None:
        self.broker = broker
        self.events.append("startup")
        if self._fails:
            raise RuntimeError("not today")

    @hookimpl
    async def broker_core_shutdown(self) -> None:
        self.events.append("shutdown")

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        self.events.append(str(request.namespace))
        return None


async def test_plugins_start_before_the_first_request_and_end_after_the_last(tmp_path: Path) -> None:
    filled(tmp_path)
    plugin = Life()
    async with Broker(settings(tmp_path), plugins={"life": plugin}) as broker:
        assert plugin.events == ["startup"]
        async with LookupSession(url(broker)) as client:
            assert len((await client.get_topics("public/default")).topics) == 3
    assert plugin.events == ["startup", "public/default", "shutdown"]


async def test_a_plugin_that_does_not_start_stops_the_start_of_all(tmp_path: Path) -> None:
    first, second = Life(), Life(fails=True)
    broker = Broker(settings(tmp_path), plugins={"first": first, "second": second})
    with pytest.raises(PluginLoadError, match=r"'second'.*not today"):
        await broker.start()
    assert first.events == ["startup", "shutdown"]
    with pytest.raises(RuntimeError, match="not listening"):
        _ = broker.pulsar_address


async def test_stopping_twice_or_before_the_start_is_harmless(tmp_path: Path) -> None:
    broker = Broker(settings(tmp_path))
    await broker.stop()
    async with Broker(settings(tmp_path)) as other:
        await other.stop()


async def test_a_stopped_broker_leaves_nothing_running(tmp_path: Path) -> None:
    filled(tmp_path)
    before = asyncio.all_tasks()
    async with Broker(settings(tmp_path)) as broker, LookupSession(url(broker)) as client:
        await client.get_topics("public/default")
    assert asyncio.all_tasks() == before


async def test_a_pipeline_without_servers_explains(tmp_path: Path) -> None:
    filled(tmp_path)
    async with opened_pipeline(settings(tmp_path), plugins={"life": Life()}) as pipeline:
        report = await explain(pipeline, Request(NAMESPACE, pattern=compile_pattern("public/default/orders")))
    assert report["chain"][0]["plugin"] == "life"
    assert report["chain"][0]["answer"] == "pass_through"
    assert (report["lister"], report["plan"], report["topics"]) == ("catalog", "literal", 2)


async def test_the_bounds_of_connections_are_those_of_the_settings(tmp_path: Path) -> None:
    bounds = {"connections": 3, "connections_per_address": 2}
    async with (
        Broker(settings(tmp_path, limits=bounds)) as broker,
        LookupSession(url(broker)),
        LookupSession(url(broker)),
    ):
        with pytest.raises(ClientError, match=r"limits\.connections_per_address"):
            await LookupSession(url(broker)).connect()


@pytest.mark.parametrize(("connections", "said"), [("auto", 0), (3, 0), (10**7, 1)])
async def test_more_connections_than_files_are_told(
    tmp_path: Path, connections: int | str, said: int
) -> None:
    with capture_logs() as logs:
        async with Broker(settings(tmp_path, limits={"connections": connections})):
            pass
    assert sum("limits.connections is more" in line["event"] for line in logs) == said


async def test_in_the_delay_of_a_stop_clients_are_served(tmp_path: Path) -> None:
    filled(tmp_path)
    broker = Broker(settings(tmp_path, http={"listen": "127.0.0.1:0"}))
    await broker.start()
    ready = "http://{}:{}/-/ready".format(*present(broker.http_address))
    stopping = asyncio.create_task(broker.stop(delay=3600))
    async with aiohttp.ClientSession() as session:

        async def is_draining() -> bool:
            async with session.get(ready) as answer:
                return answer.status == 503

        await eventually(is_draining)
        async with LookupSession(url(broker)) as client:
            assert len((await client.get_topics("public/default")).topics) == 3
    stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
    await broker.stop()
    with pytest.raises(ClientError):
        await LookupSession(url(broker)).connect()


async def test_a_broker_that_never_served_has_no_delay(tmp_path: Path) -> None:
    await asyncio.wait_for(Broker(settings(tmp_path)).stop(delay=3600), 60)


def _with_tokens(folder: Path, key: object) -> Settings:
    (folder / "public.der").write_bytes(der(key))
    table = {"methods": ["token"], "token": {"key": f"file:{folder}/public.der"}}
    rule = {"roles": ["alice"], "namespaces": ["*"], "actions": ["list"]}
    return settings(folder, authentication=table, authorization={"rules": [rule]})


async def _listed(broker: Broker, made: bytes) -> int:
    async with LookupSession(url(broker), credentials=Credentials("token", lambda: made)) as client:
        return len((await client.get_topics(str(NAMESPACE))).topics)


async def test_a_key_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    filled(tmp_path)
    given = _with_tokens(tmp_path, rsa_key())
    await asyncio.to_thread((tmp_path / "public.der").write_bytes, b"broken")
    with pytest.raises(
        AuthenticationUnusable, match=r"^authentication\.token\.key: .*der: it is no public key"
    ):
        await Broker(given).start()


async def test_the_files_of_keys_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.broker.broker.WatchedFiles", partial(WatchedFiles, period=0.01))
    filled(tmp_path)
    async with Broker(_with_tokens(tmp_path, rsa_key())) as broker:
        await asyncio.to_thread((tmp_path / "public.der").write_bytes, der(rsa_key(1)))

        async def listed() -> int:
            try:
                return await _listed(broker, token({"sub": "alice"}, key=rsa_key(1)))
            except ClientError:
                return 0

        assert await eventually(listed) == 3


class Badges:
    """Knows one badge, and passes on everything else."""

    @hookimpl
    def broker_core_authenticate(self, method: str, data: bytes) -> Principal | None:
        return Principal(data.decode()) if method == "badge" and data else None


async def test_a_plugin_with_a_method_turns_authentication_on(tmp_path: Path) -> None:
    filled(tmp_path)
    rule = {"roles": ["alice"], "namespaces": ["*"], "actions": ["list"]}
    given = settings(tmp_path, authorization={"rules": [rule]})
    async with Broker(given, plugins={"badges": Badges()}) as broker:

        async def listed(method: str, data: bytes) -> int:
            credentials = Credentials(method, lambda: data)
            async with LookupSession(url(broker), credentials=credentials) as client:
                return len((await client.get_topics(str(NAMESPACE))).topics)

        assert await listed("badge", b"alice") == 3
        with pytest.raises(ServerRefused, match="bob"):
            await listed("badge", b"bob")
        for method, data in (("badge", b""), ("none", b""), ("token", b"alice")):
            with pytest.raises(ClientError, match="Failed to authenticate"):
                await listed(method, data)


async def test_everybody_may_do_everything_only_without_authentication(tmp_path: Path) -> None:
    given = settings(tmp_path, authorization={"mode": "allow"})
    with pytest.raises(BrokerCoreError, match=r"authorization\.mode is 'allow'"):
        await Broker(given, plugins={"badges": Badges()}).start()


async def test_a_new_certificate_is_read_when_the_files_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("first")
    context = ssl.create_default_context(cafile=authority.ca)
    tls = {"listen": "127.0.0.1:0", "certificate": files.certificate, "key": files.key}
    watching: list[WatchedFiles] = []
    start = WatchedFiles.start

    async def started(watched: WatchedFiles) -> None:
        watching.append(watched)
        await start(watched)

    monkeypatch.setattr(WatchedFiles, "start", started)
    tables = settings(
        tmp_path,
        pulsar={"listen": "127.0.0.1:0", "tls": tls},
        http={"listen": "127.0.0.1:0", "tls": tls},
    )

    async def name_of(address: tuple[str, int] | None) -> str:
        _, writer = await asyncio.open_connection(*present(address), ssl=context)
        certificate = writer.get_extra_info("ssl_object").getpeercert()
        writer.close()
        await writer.wait_closed()
        return str(dict(part[0] for part in certificate["subject"])["commonName"])

    async with Broker(tables) as broker:
        assert await name_of(broker.pulsar_tls_address) == "first"
        new = authority.issue("second")
        shutil.copy(new.key, files.key)
        await watching[0].look()  # the key alone does not fit
        assert await name_of(broker.pulsar_tls_address) == "first"
        shutil.copy(new.certificate, files.certificate)
        await watching[0].look()
        assert await name_of(broker.pulsar_tls_address) == "second"
        assert await name_of(broker.https_address) == "second"


async def test_without_tls_there_are_no_addresses_of_it(tmp_path: Path) -> None:
    async with Broker(settings(tmp_path, http={"listen": "127.0.0.1:0"})) as broker:
        assert broker.pulsar_tls_address is None
        assert broker.https_address is None


async def test_an_address_of_tls_that_is_taken_is_named(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("server")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        tls = {"listen": listen, "certificate": issued.certificate, "key": issued.key}
        with pytest.raises(ListenError, match=r"pulsar\.tls\.listen: cannot listen on"):
            await Broker(settings(tmp_path, pulsar={"listen": "127.0.0.1:0", "tls": tls})).start()
