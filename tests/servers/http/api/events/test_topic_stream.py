"""Streams of topics end to end: snapshots, changes, resuming, rights, failures, slow readers, bounds."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp
import pytest

from broker_core import Access, Refused, TopicListingResult
from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from broker_core.servers.http.api.events import event_text, topic_stream
from broker_core.settings import Settings
from tests.support.api_serving import NAMESPACE, ApiServed, api_served, catalog_of
from tests.support.clock import AGES, wall_clock
from tests.support.event_reader import EventReader
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster
from tests.support.plugins import PluginOf
from tests.support.tokens import data_url, der, rsa_key, token

Topics: TypeAlias = dict[str, tuple[int, dict[str, str]]]
PATH = f"{NAMESPACE}/topics"
BILLS = "persistent://public/default/bills"
ORDERS = {f"persistent://public/default/orders-partition-{number}" for number in range(2)}
TICKS = "non-persistent://public/default/ticks"
ALL = {BILLS, TICKS, *ORDERS}


def topic(local: str) -> TopicName:
    return TopicName.parse(f"persistent://public/default/{local}")


@asynccontextmanager
async def stream(
    served: ApiServed, *, last_id: str | None = None, token: str | None = None, **params: str
) -> AsyncIterator[EventReader]:
    headers = {"Accept": "text/event-stream"}
    if last_id is not None:
        headers["Last-Event-ID"] = last_id
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    async with served.session.get(served.url + PATH, params=params, headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        yield EventReader(response)


def hash_of(event_id: str | None) -> str:
    assert event_id is not None
    return event_id.partition("~")[0]


async def test_all_topics_come_first_and_then_what_changes(served: ApiServed) -> None:
    catalog = catalog_of(served)
    async with stream(served, mode="all") as events:
        (first,) = await events.snapshot()
        assert set(first.items) == ALL
        assert events.retry is not None
        assert events.watching == [{"watching": True}]
        listed = await served.ask(PATH, params={"mode": "all"})
        assert f'W/"{hash_of(first.id)}"' == listed.headers["ETag"]
        catalog.create(topic("new"))
        event = await events.next()
        assert (event.name, event.items) == ("added", [str(topic("new"))])
        with SqliteCatalog(catalog.path) as other:  # of another process, several at once
            other.delete_all([topic("orders"), topic("bills")])
        await events.until({TICKS, str(topic("new"))})
        catalog.set_properties(topic("new"), {"other": "1"})  # nothing that shows
        catalog.create(topic("__change_events"))
        catalog.delete(topic("new"))
        event = await events.next()
        assert (event.name, event.items) == ("removed", [str(topic("new"))])
        listed = await served.ask(PATH, params={"mode": "all"})
        assert f'W/"{hash_of(event.id)}"' == listed.headers["ETag"]


async def test_it_says_that_plugins_are_asked_again(tmp_path: Path) -> None:
    lister = Lister(BILLS)
    async with api_served(tmp_path, plugins={"lister": lister.plugin}) as served, stream(served) as events:
        await events.snapshot()
        assert events.watching == [{"watching": False, "period_s": 30.0}]


@pytest.mark.parametrize(("flags", "mode"), [(True, "persistent"), (True, "all"), (False, "persistent")])
async def test_before_a_cluster_it_says_whether_that_tells_of_changes(flags: bool, mode: str) -> None:
    tells = flags and mode == "persistent"
    async with (
        FakeCluster(topic_watchers=flags, reconcile=flags) as cluster,
        aiohttp.ClientSession() as session,
    ):
        cluster.topics["public/default"] = [BILLS]
        settings = {
            "pulsar": {"listen": "127.0.0.1:0"},
            "http": {"listen": "127.0.0.1:0"},
            "upstream": {"service_url": cluster.url, "snapshots": {"max_age": "1s"}},
        }
        async with (
            Broker(Settings.model_validate(settings)) as broker,
            stream(ApiServed(broker, session), mode=mode) as events,
        ):
            await events.snapshot()
            await eventually(lambda: bool(cluster.watchers) is flags)
            cluster.change("public/default", new=[str(topic("new"))])
            await events.until({BILLS, str(topic("new"))})
            compared = {"watching": False, "period_s": 1.0}
            if not tells:
                assert events.watching == [compared]
            elif events.watching[-1] != {"watching": True}:  # it is said beside the next event
                cluster.change("public/default", deleted=[str(topic("new"))])
                await events.until({BILLS})
                assert events.watching == [compared, {"watching": True}]


async def test_the_question_holds_for_changes_too(served: ApiServed) -> None:
    catalog = catalog_of(served)
    async with (
        stream(served, pattern="public/default/o.*") as by_pattern,
        stream(served, property="region=us") as by_property,
        stream(served, mode="non_persistent") as by_mode,
    ):
        for reader, topics in ((by_pattern, ORDERS), (by_property, {BILLS}), (by_mode, {TICKS})):
            parts = await reader.snapshot()
            assert reader.topics == topics
            assert parts[-1].data["filtered"] is (reader is by_pattern)
        catalog.create(topic("other"), properties={"region": "us"})
        catalog.set_properties(topic("orders"), {"region": "us"})
        catalog.create(topic("old"))
        catalog.create(TopicName.parse("non-persistent://public/default/x"))
        await by_pattern.until({*ORDERS, str(topic("other")), str(topic("old"))})
        await by_property.until({BILLS, str(topic("other")), *ORDERS})
        await by_mode.until({TICKS, "non-persistent://public/default/x"})
        catalog.set_properties(topic("orders"), {"region": "eu"})
        await by_property.until({BILLS, str(topic("other"))})


async def test_a_client_that_comes_back_gets_what_it_missed(served: ApiServed) -> None:
    catalog = catalog_of(served)
    async with stream(served) as stays, stream(served) as first:
        await stays.snapshot()
        await first.snapshot()
        last_id, had = first.id, set(first.topics)
        first.response.close()
        async with stream(served, last_id=last_id) as same:
            catalog.create(topic("a"))
            assert (await same.next()).items == [str(topic("a"))]  # and no snapshot
            await stays.until(had | {str(topic("a"))})
        catalog.create(topic("b"))
        await stays.until(had | {str(topic("a")), str(topic("b"))})
        async with stream(served, last_id=last_id) as again:
            again.topics = had
            await again.until(stays.topics)
            assert again.id == stays.id
        async with stream(served, last_id="00000000") as other:
            await other.snapshot()
            assert other.topics == stays.topics


async def test_equal_questions_are_asked_once(served: ApiServed, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[int] = []
    render = event_text.changed_text

    def counted(*arguments: Any) -> bytes:
        rendered.append(1)
        return render(*arguments)

    monkeypatch.setattr(event_text, "changed_text", counted)
    async with stream(served) as one, stream(served, property="unknown=1") as other, stream(served) as third:
        for reader in (one, other, third):
            await reader.snapshot()
        catalog_of(served).create(topic("new"))
        for reader in (one, other, third):
            assert (await reader.next()).items == [str(topic("new"))]
        assert served.sample("http_streams") == 3
    assert len(rendered) == 1
    await eventually(lambda: served.sample("http_streams") == 0)


async def test_errors_come_before_the_stream_as_problems(served: ApiServed) -> None:
    headers = {"Accept": "text/event-stream"}
    for params, status in (({"pattern": "("}, 400), ({"mode": "some"}, 400), ({"limit": "5"}, 406)):
        said = await served.ask(PATH, params=params, headers=headers)
        assert (said.status, said.headers["Content-Type"].split(";")[0]) == (
            status,
            "application/problem+json",
        )
    head = await served.ask(PATH, "HEAD", headers=headers)
    assert (head.status, head.headers["Content-Type"]) == (200, "text/event-stream")


async def test_a_stopping_server_ends_streams_at_once(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served, stream(served) as events:
        await events.snapshot()
        started = time.monotonic()
        await served.broker.stop()
        with pytest.raises((EOFError, aiohttp.ClientError)):
            await events.next()
        assert time.monotonic() - started < 60


def tables(*rules: dict[str, Any]) -> dict[str, Any]:
    return {
        "authentication": {"methods": ["token"], "token": {"key": data_url(der(rsa_key()))}},
        "authorization": {"rules": list(rules)},
    }


async def test_a_right_that_is_lost_ends_the_stream(tmp_path: Path) -> None:
    refused: set[str | None] = set()

    async def broker_core_authorize(access: Access) -> Refused | None:
        return Refused("not any more") if access.asker.role in refused else None

    rule = {"roles": ["a", "b"], "namespaces": ["public/*"], "actions": ["list"]}
    plugins = {"gate": PluginOf(authorize=broker_core_authorize)}
    async with api_served(tmp_path, plugins=plugins, **tables(rule)) as served:
        tokens = {role: token({"sub": role}).decode() for role in "ab"}
        async with stream(served, token=tokens["a"]) as one, stream(served, token=tokens["b"]) as two:
            await one.snapshot()
            await two.snapshot()
            refused.add("a")
            catalog_of(served).create(topic("new"))
            event = await one.next()
            assert (event.name, event.data["status"], event.data["detail"]) == ("error", 403, "not any more")
            with pytest.raises(EOFError):
                await one.next()
            assert (await two.next()).items == [str(topic("new"))]


async def test_a_gate_that_fails_holds_the_topics_back(tmp_path: Path) -> None:
    broken = False

    async def broker_core_authorize(access: Access) -> None:
        if broken:
            raise RuntimeError("secret")

    plugins = {"gate": PluginOf(authorize=broker_core_authorize)}
    async with api_served(tmp_path, plugins=plugins) as served, stream(served) as events:
        await events.snapshot()
        broken = True
        catalog_of(served).create(topic("new"))
        event = await events.next()
        assert (event.name, event.data["status"]) == ("error", 502)
        assert "secret" not in str(event.data)
        broken = False
        served.broker.pipeline.changes.announce(None)
        await events.until({BILLS, *ORDERS, str(topic("new"))})


async def test_credentials_that_ended_end_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_stream, "_HEARTBEAT", 0.05)
    monkeypatch.setattr(topic_stream, "_CREDENTIALS", 0.1)
    clock = wall_clock(monkeypatch)
    rule = {"roles": ["a"], "namespaces": ["public/*"], "actions": ["list"]}
    async with api_served(tmp_path, **tables(rule)) as served:
        ends = token({"sub": "a", "exp": int(time.time() + AGES)}).decode()
        async with stream(served, token=ends) as events:
            await events.snapshot()
            clock.ahead = AGES + 60
            event = await events.next()
            assert (event.name, event.data["status"]) == ("error", 401)
            assert events.comments
            with pytest.raises(EOFError):
                await events.next()


class Lister:
    """Lists what a test says, or fails."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.fails = False

        async def broker_core_list_topics() -> TopicListingResult:
            if self.fails:
                raise RuntimeError("secret")
            return TopicListingResult.success(self.names)

        self.plugin = PluginOf(list_topics=broker_core_list_topics, depends_on=lambda: ())


async def test_a_slow_reader_that_is_refused_is_cut_off_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_stream, "_CREDENTIALS", 0.0)
    clock = wall_clock(monkeypatch)
    waits, drain = asyncio.Event(), topic_stream._TopicStream._drain

    async def drained(stream: topic_stream._TopicStream) -> None:
        waits.set()
        await drain(stream)

    # A client that reads while the next part is made in a thread is not slow.
    monkeypatch.setattr(topic_stream._TopicStream, "_drain", drained)
    lister = Lister(*(f"persistent://public/default/{'x' * 100}-{number}" for number in range(100_000)))
    rule = {"roles": ["a"], "namespaces": ["public/*"], "actions": ["list"]}
    served = api_served(
        tmp_path,
        plugins={"lister": lister.plugin},
        plugin_settings={"enabled": ["lister"]},
        **tables(rule),
    )
    async with served as broker:
        ends = token({"sub": "a", "exp": int(time.time() + AGES)}).decode()
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        assert broker.broker.http_address is not None
        await asyncio.get_running_loop().sock_connect(sock, broker.broker.http_address)
        reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
        writer.write(
            f"GET {NAMESPACE}/topics HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer {ends}\r\n\r\n".encode()
        )
        assert (await reader.read(100)).startswith(b"HTTP/1.1 200")
        await waits.wait()
        clock.ahead = AGES + 60
        rest = b""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                rest = data
        writer.close()
        assert not rest.endswith(b"0\r\n\r\n"), "the client sees that it is not whole"


async def test_what_depends_on_who_asks_is_not_shared(tmp_path: Path) -> None:
    async def broker_core_list_topics(request: Any) -> TopicListingResult:
        return TopicListingResult.success([f"persistent://public/default/of-{request.asker.role}"])

    # It reads the role and does not say so.
    plugin = PluginOf(list_topics=broker_core_list_topics, depends_on=lambda: ())
    rule = {"roles": ["a", "b"], "namespaces": ["public/*"], "actions": ["list"]}
    async with api_served(tmp_path, plugins={"lister": plugin}, **tables(rule)) as served:
        for role in "ab" * 3:
            headers = {
                "Accept": "text/event-stream",
                "Authorization": f"Bearer {token({'sub': role}).decode()}",
            }
            async with served.session.get(served.url + PATH, headers=headers) as response:
                if response.status == 200:
                    events = EventReader(response)
                    await events.snapshot()
                    assert events.topics == {f"persistent://public/default/of-{role}"}
                else:
                    assert response.status == 503


async def test_a_client_that_does_not_read_is_cut_off(tmp_path: Path) -> None:
    many: Topics = {"persistent://public/default/" + "x" * 1000: (20_000, {})}
    async with api_served(
        tmp_path, topics=many, pulsar={"listen": "127.0.0.1:0", "write_timeout": 0.5}
    ) as served:
        host, port = served.broker.http_address or ("", 0)
        _, writer = await asyncio.open_connection(host, port, limit=1024)
        writer.write(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode())
        await eventually(lambda: served.sample("http_streams") == 1)
        await eventually(lambda: served.sample("http_streams") == 0)
        writer.close()


async def test_an_http_1_0_client_gets_plain_events(served: ApiServed) -> None:
    host, port = served.broker.http_address or ("", 0)
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET {PATH} HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n".encode())
    text = await reader.readuntil(b'"filtered":false}\n\n')
    head, _, body = text.partition(b"\r\n\r\n")
    assert b"chunked" not in head.lower()
    assert body.startswith(b"retry: ")
    writer.close()
