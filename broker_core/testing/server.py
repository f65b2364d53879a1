"""A whole server in the process of a test: a catalogue in a folder that goes away, free ports, clients of it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.cli.common_options import Given
from broker_core.cli.running_broker import get
from broker_core.client import LookupSession, TopicsAnswer
from broker_core.compact_json import compact_json
from broker_core.listing import Page
from broker_core.names import Mode, TopicName
from broker_core.quantities import ListenAddress
from broker_core.settings import HttpSettings, Settings
from broker_core.testing.invoke_command import Invoked, invoke_given
from broker_core.testing.make_request import mode_of
from broker_core.testing.mask_check import check_mask
from broker_core.testing.metric_families import MetricFamilies
from broker_core.testing.personas import Persona, Personas
from broker_core.testing.pipeline_question import PipelineAnswer, ask
from broker_core.testing.undeclared_reads import ReadFields

__all__ = ["Server", "serve"]


class Server:
    """A running broker with a client of it; :func:`serve` makes one.

    Each question has its own asker: ``role`` is the authenticated role, ``address`` a ``HOST`` or ``HOST:PORT``, and
    ``client_version`` what the client calls itself. No transport carries a role yet, so only clients of this kit can
    have one; any other client of :attr:`url` has its own identity.
    """

    def __init__(
        self,
        broker: Broker,
        client: LookupSession,
        catalog: SqliteCatalog,
        given: Mapping[str, object],
        personas: Personas,
        stack: AsyncExitStack,
    ) -> None:
        self.broker = broker
        self.client = client
        self._catalog = catalog
        self._given = given
        self._personas = personas
        self._stack = stack
        self._clients: dict[Persona, LookupSession] = {Persona(): client}
        self._connecting = asyncio.Lock()

    @property
    def url(self) -> str:
        """The service URL for clients."""
        return str(self.client.service_url)

    @property
    def http_url(self) -> str:
        """The URL of ``/metrics``, ``/plugins`` and their like, without a slash at the end."""
        address = self.broker.http_address
        assert address is not None
        return f"http://{ListenAddress(*address)}"

    @property
    def kafka_address(self) -> str:
        """``HOST:PORT`` for clients of Kafka. Raises :exc:`RuntimeError` unless the settings have ``[kafka]``."""
        address = self.broker.kafka_address
        if address is None:
            raise RuntimeError('there is no listener for Kafka clients: give serve() settings={"kafka": {}}')
        return str(ListenAddress(*address))

    async def list(
        self,
        namespace: str,
        *,
        pattern: str | None = None,
        mode: Mode | str = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
        topics_hash: str | None = None,
        client_version: str | None = None,
        role: str | None = None,
        address: str | None = None,
    ) -> TopicsAnswer:
        """Ask over the protocol: ``topics`` (full names), ``filtered``, ``topics_hash`` and ``changed`` of the answer.

        Each asker has one connection for all its questions. Raises
        :exc:`~broker_core.client.ServerRefused` with the ``code`` and the ``message`` that a client gets.
        """
        client = await self._client(Persona(role, address, client_version))
        return await client.get_topics(
            namespace, mode_of(mode), pattern=pattern, topics_hash=topics_hash, properties=properties
        )

    async def ask(
        self,
        namespace: str,
        *,
        pattern: str | None = None,
        mode: Mode | str = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
        topics_hash: str | None = None,
        page: Page | None = None,
        wants: Collection[str] = (),
        client_version: str | None = None,
        role: str | None = None,
        address: str | None = None,
    ) -> PipelineAnswer:
        """Ask the pipeline itself, past the protocol: the answer names the lister, besides what a client gets.

        No transport asks for a page or for details yet: a plugin gets ``page`` and ``wants`` in the request. Raises
        :exc:`~broker_core.errors.ListingFailed` with the message for a client.
        """
        return await ask(
            self.broker.pipeline,
            Persona(role, address, client_version),
            namespace,
            pattern=pattern,
            mode=mode,
            properties=properties,
            topics_hash=topics_hash,
            page=page,
            wants=wants,
        )

    async def partitions(
        self,
        topic: str,
        *,
        auto_create: bool = True,
        client_version: str | None = None,
        role: str | None = None,
        address: str | None = None,
    ) -> int:
        """The number of partitions of a topic (full name) that a client gets, 0 for none: PARTITIONED_METADATA.

        Clients ask it for each listed topic. Without ``auto_create`` a missing topic is an error. Raises
        :exc:`~broker_core.client.ServerRefused`.
        """
        client = await self._client(Persona(role, address, client_version))
        return await client.partitioned_metadata(topic, auto_create)

    async def metrics(self) -> MetricFamilies:
        """The parsed text of ``/metrics``: ``(await server.metrics()).value("broker_core_mine_answers_total")``."""
        return MetricFamilies.parse(await asyncio.to_thread(get, self.http_url, "/metrics"))

    async def invoke(
        self, name: str, arguments: Sequence[str | os.PathLike[str]] = (), *, stdin: str = ""
    ) -> Invoked:
        """Run ``broker-core NAME ARGUMENTS`` for a plugin of this server, with the settings of this server."""
        return await asyncio.to_thread(invoke_given, self._given_to_commands(), name, arguments, stdin)

    async def create(
        self, topic: str, *, partitions: int = 0, properties: Mapping[str, str] | None = None
    ) -> None:
        """Add a topic (full name) to the catalogue, which the next listing sees."""
        await asyncio.to_thread(_create, self._catalog, topic, partitions, properties)

    async def delete(self, topic: str) -> None:
        """Remove a topic from the catalogue, which the next listing sees."""
        await asyncio.to_thread(self._catalog.delete, TopicName.parse(topic))

    async def _client(self, persona: Persona) -> LookupSession:
        async with self._connecting:
            found = self._clients.get(persona)
            if found is not None and found.is_open:
                return found
            version = persona.client_version if persona.is_plain else self._personas.announce(persona)
            client = await self._stack.enter_async_context(LookupSession(self.url, client_version=version))
            self._clients[persona] = client
            return client

    def _given_to_commands(self) -> Given:
        """The settings with the ports that were free, so that a command which asks the broker finds it."""
        settings = self.broker.settings
        assert self.broker.http_address is not None
        pulsar = settings.pulsar.model_copy(update={"listen": ListenAddress(*self.broker.pulsar_address)})
        http = (settings.http or HttpSettings()).model_copy(
            update={"listen": ListenAddress(*self.broker.http_address)}
        )
        return Given(settings.model_copy(update={"pulsar": pulsar, "http": http}), self._given)


@asynccontextmanager
async def serve(
    plugins: Mapping[str, object] | None = None,
    *,
    topics: Iterable[str] | Mapping[str, Mapping[str, str]] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    check_masks: bool = True,
    check_reads: bool = True,
) -> AsyncIterator[Server]:
    """Serve ``plugins`` (name -> module or instance, in the order of the chain) on free ports of the loopback.

    ``topics`` are full names in the catalogue, which answers if no plugin does; a mapping gives each its properties.
    ``settings`` are the tables of a settings file: ``{"plugins": {"mine": {"deadline": "1s"}}}``. The environment and
    files are not read, and installed plugins are off unless ``settings`` enables them. With ``{"kafka": {}}`` Kafka
    clients are served too.

    With ``check_masks`` each mask is asked about the same names once more, shuffled and in pieces, and a listing fails
    if the answers differ: a mask must judge each name by itself. Turn it off if a mask counts its calls, or changes its
    mind from one to the next.

    With ``check_reads`` the end of the block raises :exc:`AssertionError` if a plugin has read fields of a request that
    its ``broker_core_depends_on`` does not declare.
    """
    plugins = dict(plugins or {})
    personas = Personas()
    with tempfile.TemporaryDirectory(prefix="broker-core-testing-") as folder:
        tables = _tables(settings or {}, list(plugins), Path(folder))
        path = Path(tables["catalog"]["path"])
        catalog = await asyncio.to_thread(_filled, path, topics)
        try:
            async with (
                Broker(Settings(**tables), plugins=plugins, identify=personas.identify) as broker,
                AsyncExitStack() as stack,
            ):
                if check_masks:
                    broker.pipeline.dispatcher.mask_hook.check_mask = check_mask
                reads = ReadFields(broker.pipeline.dispatcher) if check_reads else None
                host, port = broker.pulsar_address
                client = await stack.enter_async_context(LookupSession(f"pulsar://{host}:{port}"))
                yield Server(broker, client, catalog, plugins, personas, stack)
            if reads is not None:
                reads.check()
        finally:
            await asyncio.to_thread(catalog.close)


def _tables(settings: Mapping[str, Mapping[str, Any]], plugins: list[str], folder: Path) -> dict[str, Any]:
    tables: dict[str, dict[str, Any]] = {name: dict(table) for name, table in settings.items()}
    tables.setdefault("pulsar", {}).setdefault("listen", "127.0.0.1:0")
    tables.setdefault("http", {}).setdefault("listen", "127.0.0.1:0")
    if "kafka" in tables:
        tables["kafka"].setdefault("listen", "127.0.0.1:0")
    tables.setdefault("catalog", {}).setdefault("path", folder / "topics.sqlite")
    tables.setdefault("plugins", {}).setdefault("enabled", plugins)
    return tables


def _filled(path: Path, topics: Iterable[str] | Mapping[str, Mapping[str, str]]) -> SqliteCatalog:
    catalog = SqliteCatalog(path)
    try:
        properties = topics if isinstance(topics, Mapping) else {}
        for topic in topics:
            _create(catalog, topic, 0, properties.get(topic))
    except BaseException:
        catalog.close()
        raise
    return catalog


def _create(
    catalog: SqliteCatalog, topic: str, partitions: int, properties: Mapping[str, str] | None
) -> None:
    """Add a topic; a partition comes without its topic too, as brokers may list it."""
    name = TopicName.parse(topic)
    if name.partition < 0:
        catalog.create(name, partitions=partitions, properties=properties)
        return
    given = {"partitions": partitions or None, "properties": None if properties is None else dict(properties)}
    line = {"name": topic, **{key: value for key, value in given.items() if value is not None}}
    import_topics(catalog, name.namespace, BytesIO(compact_json(line).encode()))
