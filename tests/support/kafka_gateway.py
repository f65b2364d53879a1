"""A gateway before a Kafka cluster that a server of this project plays, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core.broker import Broker
from broker_core.client.kafka import AdminClient, NewTopic
from broker_core.plugin_api.hookspecs import hookimpl
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.settings import HttpSettings, ListenAddress
from tests.support.kafka_page_rows import ClusterRows
from tests.support.kafka_serving import kafka_broker
from tests.support.ports import free_port

__all__ = ["NAMESPACE", "Cluster", "Secrets", "address_of", "gateway", "play", "small_cluster"]

NAMESPACE = "acme/kafka"


def address_of(broker: Broker) -> str:
    assert broker.kafka_address is not None
    return "{}:{}".format(*broker.kafka_address)


class Secrets:
    """Hides topics that begin with ``secret``."""

    @hookimpl
    def broker_core_depends_on(self) -> tuple[str, ...]:
        return ()

    @hookimpl
    def broker_core_visible(self, request: ListingRequest, topics: pa.LargeStringArray) -> Any:
        return pc.invert(pc.match_substring(topics, "/secret"))


class Cluster(AdminClient):
    """The client of the cluster itself, which can be stopped."""

    broker: Broker
    address: str

    def __init__(self, broker: Broker) -> None:
        super().__init__(address_of(broker))
        self.broker = broker
        self.address = address_of(broker)


@asynccontextmanager
async def small_cluster(folder: Path, **kafka: Any) -> AsyncIterator[Cluster]:
    """A cluster of the one node 7 with the topics mail, orders (of three partitions) and secret.keys; ``kafka`` are
    further settings of its node.
    """
    async with kafka_broker(folder, node_id=7, **kafka) as broker, Cluster(broker) as client:
        (await client.create_topics([NewTopic("orders", 3), NewTopic("secret.keys"), NewTopic("mail")])).all()
        yield client


def play(rows: ClusterRows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clusters that are made from now on have groups, transactions, producers and reassignments."""
    monkeypatch.setattr("broker_core.servers.kafka.server.HANDLERS", {**HANDLERS, **rows.handlers()})


@asynccontextmanager
async def gateway(
    folder: Path,
    cluster: str,
    plugins: Mapping[str, object] | None = None,
    tables: Mapping[str, Any] | None = None,
    kafka: Mapping[str, Any] | None = None,
    **upstream: Any,
) -> AsyncIterator[Broker]:
    """A gateway before the cluster at an address; ``upstream`` are further settings of the table, ``kafka`` those of
    the one above it, ``tables`` others.
    """
    (folder / "gateway").mkdir(exist_ok=True)
    table = {
        "bootstrap_servers": [cluster],
        "namespace": NAMESPACE,
        "ports": str(free_port()),
        "max_age": 1,
        **upstream,
    }
    http = HttpSettings(listen=ListenAddress("127.0.0.1", 0))
    async with kafka_broker(
        folder / "gateway",
        upstream=table,
        plugins=plugins,
        tables={"http": http, **(tables or {})},
        **(kafka or {}),
    ) as broker:
        yield broker
