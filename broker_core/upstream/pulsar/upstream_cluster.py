"""The cluster behind this server as one thing: its connections, its lister, its relay."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from broker_core.metrics.metrics import Metrics
from broker_core.upstream.pulsar.lookup_relay import LookupRelay
from broker_core.upstream.pulsar.options import UpstreamOptions
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections
from broker_core.upstream.pulsar.upstream_lister import UpstreamLister
from broker_core.wire.pulsar import DEFAULT_MAX_MESSAGE_SIZE, CommandConnected

__all__ = ["UpstreamCluster"]

_MAX_LOOKUP_ANSWER: Final = (
    16 * 1024 * 1024
)  # bytes; a schema is the largest of them, and fits into a message
_LOOKUPS_IN_FLIGHT: Final = 256  # over one connection, before another is opened

_log = structlog.get_logger(__name__)


class UpstreamCluster:
    """Lookups and listings have connections of their own: a listing of 65 MB must not make a lookup wait."""

    def __init__(self, options: UpstreamOptions, metrics: Metrics | None = None) -> None:
        self.options = options
        self._warned: set[str] = set()
        self._lookups = UpstreamConnections(
            options,
            size=options.lookup_connections,
            busy=_LOOKUPS_IN_FLIGHT,
            max_frame=_MAX_LOOKUP_ANSWER,
            on_connected=self._connected,
        )
        self._listings = UpstreamConnections(
            options,
            size=options.listing_connections,
            busy=1,
            max_frame=None,
            on_connected=self._connected,
        )
        self.relay = LookupRelay(self._lookups, options, metrics or Metrics())
        self.lister = UpstreamLister(self._listings, options)

    async def start(self, wait: float = 2.0) -> None:
        """Begin to connect, and wait at most ``wait`` seconds for the first attempt; the cluster may well be down."""
        await asyncio.gather(self._lookups.start(wait), self._listings.start(wait))

    async def stop(self) -> None:
        """Close all connections; what is asked over them fails."""
        await self._lookups.stop()
        await self._listings.stop()

    def _connected(self, server: CommandConnected) -> None:
        """Warn of what an operator must change at the brokers, once each."""
        self.relay.connected(server)
        service_url = self.options.upstream.service_url
        if server.feature_flags.supports_topic_watchers and "watchers" not in self._warned:
            self._warned.add("watchers")
            _log.warning(
                "the brokers offer topic list watchers, which Java clients open there, past this server and its "
                "plugins: set enableBrokerTopicListWatcher=false at the brokers",
                service_url=service_url,
                server=server.server_version,
            )
        theirs = server.max_message_size if server.HasField("max_message_size") else DEFAULT_MAX_MESSAGE_SIZE
        if theirs != self.options.pulsar.max_message_size and "max_message_size" not in self._warned:
            self._warned.add("max_message_size")
            _log.warning(
                "the brokers have another max_message_size, and clients take it from whoever they asked last: "
                "set pulsar.max_message_size to theirs",
                service_url=service_url,
                theirs=theirs,
                ours=self.options.pulsar.max_message_size,
            )
