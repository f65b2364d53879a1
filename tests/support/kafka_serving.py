"""A broker that serves Kafka clients, and a raw client of one connection, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from broker_core.broker import Broker
from broker_core.quantities import ListenAddress
from broker_core.settings import CatalogSettings, KafkaSettings, PulsarSettings, Settings
from broker_core.wire.kafka import Api, Fields, read_response, request_frame

__all__ = ["RawKafkaClient", "ask_once", "kafka_broker", "raw_client"]


class RawKafkaClient:
    """Sends requests of any version, and reads the answers in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._last = 0

    def send(self, api: Api, version: int, value: Mapping[str, Any]) -> int:
        """Send a request; returns its correlation id."""
        self._last += 1
        self.writer.write(request_frame(api, version, self._last, "test", value))
        return self._last

    async def message(self) -> bytes:
        """The next answer without its length; empty if the server has closed the connection."""
        try:
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def ask(self, api: Api, version: int, value: Mapping[str, Any]) -> Fields:
        """The answer to a request."""
        sent = self.send(api, version, value)
        number, fields = read_response(api, version, await self.message())
        assert number == sent
        return fields

    async def answer(self, api: Api, version: int) -> Fields:
        """The next answer, to a request that was sent."""
        return read_response(api, version, await self.message())[1]


@asynccontextmanager
async def raw_client(address: tuple[str, int]) -> AsyncIterator[RawKafkaClient]:
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield RawKafkaClient(reader, writer)
    finally:
        writer.close()


@asynccontextmanager
async def kafka_broker(
    folder: Path,
    *,
    plugins: Mapping[str, object] | None = None,
    tables: Mapping[str, Any] | None = None,
    **kafka: Any,
) -> AsyncIterator[Broker]:
    """A broker whose catalogue is ``catalog.sqlite`` in a folder, on free ports; ``kafka`` are further settings of the
    table, ``tables`` other tables.
    """
    free = ListenAddress("127.0.0.1", 0)
    settings = Settings(
        pulsar=PulsarSettings(listen=free),
        kafka=KafkaSettings(listen=free, **kafka),
        catalog=CatalogSettings(path=folder / "catalog.sqlite"),
        **(tables or {}),
    )
    async with Broker(settings, plugins=plugins) as broker:
        yield broker


async def ask_once(broker: Broker, api: Api, version: int, value: Mapping[str, Any]) -> Fields:
    """The answer to one request, over a connection of its own."""
    assert broker.kafka_address is not None
    async with raw_client(broker.kafka_address) as client:
        return await client.ask(api, version, value)
