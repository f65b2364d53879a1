"""The stage of the steps of watchers: a broker, a gateway before it, and consumers by pattern of each family.

One namespace can be watched, in the other one a plugin makes clients poll. Both plugins read the rules of the scene.
"""

from __future__ import annotations

import asyncio
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from urllib.error import HTTPError

import pulsar

from broker_core.client import ClientTls, Credentials, LookupClient, LookupSession, PatternDiscovery, Token
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode
from tests.interop.conftest import gateway_settings
from tests.interop.gate import Gate
from tests.interop.go_program import go_consumers
from tests.interop.programs import DrivenConsumers, GoConsumers, JavaConsumers, PythonConsumers
from tests.interop.pulsar_peer import ADMIN, GATEWAY, PulsarBroker, Security
from tests.interop.secured_stage import ORDERS, gateway_tables
from tests.support.eventually import eventually
from tests.support.ports import free_ports
from tests.support.scraped import samples, total
from tests.support.served import Served

__all__ = ["POLLED", "WATCHED", "Consuming", "WatchStage"]

WATCHED, POLLED = "public/watched", "public/polled"
_SOON: Final = 60.0
call = asyncio.to_thread


@dataclass
class Consuming:
    """A consumer by pattern, and how often each message has to come to it."""

    name: str
    program: DrivenConsumers
    namespace: str
    pattern: str
    wanted: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Topics that it has a subscription of, which has to live.
    topics: set[str] = field(default_factory=set)

    def takes(self, topic: str) -> bool:
        """Whether its pattern matches the topic."""
        return re.fullmatch(f"persistent://{self.namespace}{self.pattern}", topic) is not None

    @property
    def received(self) -> Counter[tuple[str, str]]:
        return self.program.received(self.name)

    def has_all(self) -> bool:
        return self.wanted <= self.received


class _Discovery:
    """What a watcher of this project's own client has, by updates alone."""

    def __init__(self, changes: PatternDiscovery) -> None:
        self.changes = changes
        self.topics: set[str] = set()
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for change in self.changes:
            self.topics = (self.topics | set(change.added)) - set(change.removed)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class WatchStage:
    """``security`` is that of a broker that asks for tokens and speaks TLS: then the gateway does the same."""

    def __init__(self, folder: Path, broker: PulsarBroker, security: Security | None) -> None:
        self.folder, self.broker, self.security = folder, broker, security
        folder.mkdir()
        self.gate = Gate(folder)
        tables: dict[str, dict[str, Any]] = (
            gateway_settings(broker, self.gate)
            if security is None
            else gateway_tables(broker, security, self.gate)
        )
        if security is not None:
            (rule, _) = tables["authorization"]["rules"]
            rule["namespaces"] = [WATCHED, POLLED]
        else:
            # It comes back where it was.
            tables["pulsar"] = {"listen": f"127.0.0.1:{free_ports(1)[0]}"}
            tables["http"] = {"listen": "127.0.0.1:0"}
        tables["plugins"] = {
            "enabled": ["gate", "watchable"],
            "gate": {**self.gate.settings, "namespaces": [POLLED]},
            "watchable": {**self.gate.settings, "namespaces": [WATCHED]},
        }
        tables["upstream"]["snapshots"] = {"max_age": "5s"}
        tables["shrink_guard"] = {"file": str(folder / "guard.txt")}
        self.gateway = Served(folder, tables, python_path=self.gate.site)
        self.consuming: list[Consuming] = []
        #: Seconds from the begin of a step until each client had its messages.
        self.seconds: dict[str, dict[str, float]] = {}
        self._stack = ExitStack()
        self._hidden: Callable[[str], bool] = lambda _: False
        self._changed = time.monotonic()
        self._watcher: _Discovery

    # -- addresses and credentials

    @property
    def gateway_url(self) -> str:
        return self.gateway.service_url if self.security is None else self.gateway.tls_service_url

    @property
    def broker_url(self) -> str:
        return self.broker.service_url if self.security is None else self.broker.tls_service_url

    @property
    def _files(self) -> dict[str, Path]:
        return (
            {}
            if self.security is None
            else {"token": self.security.token_file(ORDERS), "ca": self.security.ca}
        )

    def session(self, url: str) -> LookupSession:
        """A session of the clients' role."""
        if self.security is None:
            return LookupSession(url)
        credentials = Credentials("token", self.security.token(ORDERS).encode)
        return LookupSession(url, credentials=credentials, tls=ClientTls(ca=self.security.ca))

    def metric(self, name: str, label: str = "") -> float:
        """The sum of a metric of the gateway."""
        with urllib.request.urlopen(f"http://{self.gateway.ready['http']}/metrics") as answer:
            return total(samples(answer.read().decode()), f"broker_core_{name}", label)

    # -- beginning and end

    async def __aenter__(self) -> Self:
        admin = self.broker.admin
        for namespace in (WATCHED, POLLED):
            await call(admin.create_namespace, namespace)
            for role in () if self.security is None else (ORDERS, GATEWAY):
                await call(admin.grant, namespace, role, "consume", "produce")
        await call(self._stack.enter_context, self.gateway)
        options: dict[str, Any] = {"logger": pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/null")}
        if self.security is not None:
            options["authentication"] = pulsar.AuthenticationToken(self.security.token(ADMIN))
            options["tls_trust_certs_file_path"] = str(self.security.ca)
        self._publisher = pulsar.Client(self.broker_url, **options)
        return self

    async def __aexit__(self, *_: object) -> None:
        await call(self._publisher.close)
        if hasattr(self, "_watcher"):
            await self._watcher.close()
            await self._client.close()
        await call(self._stack.close)

    async def consume(self) -> None:
        """Start the clients: Java that watches, that polls for a plugin, and for its mode; Go; Python."""
        enter, folder, url, files = self._stack.enter_context, self.folder, self.gateway_url, self._files
        java = enter(await call(JavaConsumers, folder / "java.log", self.broker.jars, url, **files))
        go = enter(await call(GoConsumers, folder / "go.log", await call(go_consumers), url, **files))
        python = enter(await call(PythonConsumers, folder / "python.log", url, **files))
        for name, program, namespace in (
            ("java-watch", java, WATCHED),
            ("java-properties", java, POLLED),
            ("java-all", java, WATCHED),
            ("go", go, WATCHED),
            ("python", python, WATCHED),
        ):
            properties = {"who": "polls"} if name == "java-properties" else {}
            mode, scheme = ("AllTopics", "") if name == "java-all" else ("PersistentOnly", "persistent://")
            # The library of Python finds no topic any more once a topic with partitions was deleted that it consumes.
            local = "t-.*" if name == "python" else "[tp]-.*"
            pattern = f"{scheme}{namespace}/{local}"
            await call(program.subscribe, name, pattern, properties=properties, mode=mode)
            self.consuming.append(Consuming(name, program, namespace, f"/{local}"))
        security = self.security
        self._client = (
            LookupClient(url)
            if security is None
            else LookupClient(url, auth=Token(security.token(ORDERS)), tls=ClientTls(ca=security.ca))
        )
        self._watcher = _Discovery(self._client.watch(f"persistent://{WATCHED}/.*", period=3600))
        await eventually(lambda: self._watcher.changes.is_watching)

    # -- what changes

    def names(self, local: str, partitions: int = 0) -> list[str]:
        """A topic of both namespaces, by what a consumer subscribes to."""
        made = [f"persistent://{namespace}/{local}" for namespace in (WATCHED, POLLED)]
        return [f"{topic}-partition-{index}" for topic in made for index in range(partitions)] or made

    async def create(self, local: str, partitions: int = 0) -> list[str]:
        """Create a topic in both namespaces."""
        for topic in self.names(local):
            await call(self.broker.admin.create_topic, topic, partitions)
        self._changed = time.monotonic()
        return self.names(local, partitions)

    async def create_many(self, count: int) -> list[str]:
        """Create topics in the watched namespace, many at a time."""
        pool = asyncio.Semaphore(16)
        names = [f"persistent://{WATCHED}/t-many-{number}" for number in range(count)]

        async def create(name: str) -> None:
            async with pool:
                await call(self.broker.admin.create_topic, name)

        await asyncio.gather(*map(create, names))
        self._changed = time.monotonic()
        return names

    async def delete(self, local: str, partitions: int = 0) -> None:
        """Delete a topic in both namespaces, also one with consumers."""
        for topic in self.names(local):
            await call(self.broker.admin.delete_topic, topic, partitioned=bool(partitions))
        self._changed = time.monotonic()
        for client in self.consuming:
            client.topics -= set(self.names(local, partitions))

    def rule(self, hide: str | None = None, **rules: Any) -> None:
        """Replace the rules of both plugins."""
        self._hidden = (lambda topic: hide in topic) if hide else (lambda _: False)
        for namespace in (WATCHED, POLLED):
            self.gate.rule(namespace, hide=hide, **rules)
        self._changed = time.monotonic()

    async def publish(self, topics: Iterable[str], text: str) -> None:
        """Send a message to each topic, past the gateway, for all clients whose pattern it matches."""
        for topic in topics:
            await call(self._send, topic, text)
            for client in self.consuming:
                if client.takes(topic):
                    client.wanted[topic, text] += 1
                    client.topics.add(topic)

    async def load(self, local: str) -> None:
        """Produce to a non-persistent topic, once all have subscribed that take such topics."""
        topic, admin = f"non-persistent://{WATCHED}/{local}", self.broker.admin
        await call(admin.create_topic, topic)
        producer = await call(
            self._publisher.create_producer, topic
        )  # without it brokers do not list the topic

        async def are_there() -> bool:
            try:
                ready = await call(admin.permits, topic)
            except HTTPError:  # while a consumer subscribes
                return False
            return ready.keys() == {"java-all"} and ready["java-all"] > 0

        await eventually(are_there, _SOON, what=f"the subscription of {topic}")
        await call(producer.send, local.encode())
        for client in self.consuming:
            client.wanted[topic, local] += client.name == "java-all"
        listings = [await self.listed(url, WATCHED, Mode.ALL) for url in (self.gateway_url, self.broker_url)]
        assert listings[0] == ({each for each in listings[1][0] if not self._hidden(each)}, listings[0][1])

    def _send(self, topic: str, text: str) -> None:
        producer = self._publisher.create_producer(topic)
        producer.send(text.encode())
        producer.close()

    # -- what is right

    async def listed(self, url: str, namespace: str, mode: Mode = Mode.PERSISTENT) -> tuple[set[str], str]:
        """The topics of a namespace, and their hash as the server tells it."""
        async with self.session(url) as session:
            answer = await session.get_topics(namespace, mode)
        assert answer.topics_hash == topics_hash(answer.topics)
        return set(answer.topics), answer.topics_hash

    async def is_right(self, step: str) -> None:
        """Wait until the watcher, the listings and each client have what they should."""
        began = self._changed
        self.seconds[step] = took = {}

        async def watcher() -> None:
            names = {
                name for name in (await self.listed(self.broker_url, WATCHED))[0] if not self._hidden(name)
            }
            try:
                await eventually(
                    lambda: self._watcher.topics == names, _SOON, what=f"{step}: the watcher's topics"
                )
            except AssertionError as error:
                had, changes = self._watcher.topics, self._watcher.changes
                error.add_note(f"missing: {sorted(names - had)[:5]}..., {len(names - had)} in all")
                error.add_note(f"too many: {sorted(had - names)[:5]}..., {len(had - names)} in all")
                error.add_note(f"watching: {changes.is_watching}, last failure: {changes.last_error}")
                raise
            took["watcher"] = time.monotonic() - began

        async def consumer(client: Consuming) -> None:
            what = f"{step}: messages at {client.name}"
            try:
                await eventually(client.has_all, _SOON, what=what)
            except AssertionError as error:
                error.add_note(f"missing: {client.wanted - client.received}")
                raise
            took[client.name] = time.monotonic() - began

        await asyncio.gather(watcher(), *map(consumer, self.consuming))
        for namespace in (WATCHED, POLLED):
            theirs, told = await self.listed(self.broker_url, namespace)
            ours, own = await self.listed(self.gateway_url, namespace)
            assert ours == {name for name in theirs if not self._hidden(name)}
            assert own == told or any(map(self._hidden, theirs))
        await self.subscriptions_live()
        for client in self.consuming:
            assert client.received == client.wanted, (
                f"{step}: {client.name}: {client.received - client.wanted}"
            )

    async def subscriptions_live(self) -> None:
        """Each client has its subscription of each topic that it is to have, by the broker's word."""
        topics = set().union(*(client.topics for client in self.consuming))
        found = {topic: await call(self.broker.admin.subscriptions, topic) for topic in sorted(topics)}
        for client in self.consuming:
            gone = [topic for topic in client.topics if client.name not in found[topic]]
            assert not gone, f"{client.name} has no subscription of {gone}"

    async def all_acknowledged(self) -> None:
        """Wait until nothing is to be sent again after a restart of the broker."""
        admin = self.broker.admin
        for client in self.consuming:
            for topic in client.topics:

                async def is_read(topic: str = topic, name: str = client.name) -> bool:
                    return await call(admin.backlog, topic, name) == 0

                await eventually(is_read, _SOON, what=f"no backlog of {client.name} in {topic}")
