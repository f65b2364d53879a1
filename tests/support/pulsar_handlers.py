"""A handler of a Pulsar client's commands over a lister in memory: no socket, no server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from broker_core.access.asker import Asker
from broker_core.access.authorization import Authorization
from broker_core.access.clients import Client
from broker_core.access.peer import Peer
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.pipeline import Pipeline
from broker_core.plugins import Dispatcher, PluginRegistry
from broker_core.servers.admission import RequestSlots
from broker_core.servers.connection import Closing, FrameSender
from broker_core.servers.pulsar.catalog_lookups import CatalogLookups
from broker_core.servers.pulsar.command_handler import (
    PulsarCommandHandler,
    PulsarOptions,
    PulsarServices,
    Reply,
)
from broker_core.servers.pulsar.listing_job import SmallAnswers
from broker_core.service import Admission, Find
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import HEADER_SIZE
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.memory_lister import MemoryLister

__all__ = ["Talk", "decoded", "talk"]


@dataclass
class Talk:
    """A handler, and what is behind it. Its clock is the event loop's, if there is one, else stands at 100."""

    handler: PulsarCommandHandler
    pipeline: Pipeline
    metrics: Metrics
    slots: RequestSlots
    unasked: list[bytes | Closing]

    def say(self, frame: bytes) -> Reply:
        """What the handler makes of one frame."""
        return self.handler.handle(frame[HEADER_SIZE:])

    def answer(self, frame: bytes) -> BaseCommand:
        """The command that it answers at once."""
        reply = self.say(frame)
        assert isinstance(reply, bytes)
        return decoded(reply)

    def another_client(self) -> Talk:
        """A further client of the server, which has not sent anything."""
        peer = Peer("192.0.2.2:1", "pulsar")
        handler = PulsarCommandHandler(
            self.handler._services,
            peer,
            _now,
            Client("pulsar", ""),
            FrameSender(self.unasked.append, _taken, lambda: False),
        )
        return replace(self, handler=handler)

    def connect(
        self, client_version: str = "Pulsar-Java-v4.2.4", protocol_version: int = commands.PROTOCOL_VERSION
    ) -> BaseCommand:
        return self.answer(commands.connect(client_version, protocol_version=protocol_version))


def talk(
    lister: MemoryLister | None = None,
    *,
    plugins: Mapping[str, object] | None = None,
    options: PulsarOptions | None = None,
    places: int = 0,
    identify: Callable[[Asker], Asker] = lambda asker: asker,
    authorization: Authorization | None = None,
    admission: Callable[[Metrics], Admission] | None = None,
) -> Talk:
    metrics, slots, unasked = Metrics(), RequestSlots(places), list[bytes | Closing]()
    dispatcher = Dispatcher(PluginRegistry.load(given=plugins or {}))
    pipeline = Pipeline(lister or MemoryLister(), dispatcher, Permits(), metrics, authorization=authorization)
    lookups = CatalogLookups(pipeline, Find(pipeline, None))
    small = SmallAnswers(pipeline)
    services = PulsarServices(
        pipeline,
        lookups,
        metrics,
        options or PulsarOptions(),
        slots,
        identify,
        small,
        None if admission is None else admission(metrics),
    )
    handler = PulsarCommandHandler(
        services,
        Peer("192.0.2.1:4711", "pulsar"),
        _now,
        Client("pulsar", "192.0.2.1:4711"),
        FrameSender(unasked.append, _taken, lambda: False),
    )
    return Talk(handler, pipeline, metrics, slots, unasked)


def _taken(_frame: bytes) -> bool:
    return True


def _now() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 100.0


def decoded(frame: bytes) -> BaseCommand:
    return commands.decode(frame[HEADER_SIZE:])
