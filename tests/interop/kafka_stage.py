"""Servers of this project for Kafka's clients: plain, with SASL, with TLS, and with both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from broker_core.catalog import ScramRow, SqliteCatalog
from broker_core.kafka.scram.credentials import derive_credential
from broker_core.names import TopicName
from tests.interop.kafka_clients.python.case_lines import Server
from tests.support.certificates import Authority
from tests.support.served import Served

__all__ = ["ROADS", "KafkaServed", "Road", "kafka_server"]

_SCRAM: Final = "SCRAM-SHA-256"
#: The one user of clients that authenticate.
USER: Final = "alice"
PASSWORD: Final = "alice-secret"


@dataclass(frozen=True)
class Road:
    """How a client comes to a server."""

    mechanism: str | None = None
    tls: bool = False


ROADS: Final[Mapping[str, Road]] = {
    "plain": Road(),
    "sasl-plain": Road("PLAIN"),
    "sasl-scram-256": Road(_SCRAM),
    "tls": Road(tls=True),
    "sasl-plain-tls": Road("PLAIN", tls=True),
    "sasl-scram-512-tls": Road("SCRAM-SHA-512", tls=True),
}


@dataclass(frozen=True)
class KafkaServed:
    """A served process, and how clients come to it by its road."""

    served: Served
    clients: Server
    folder: Path


@contextmanager
def kafka_server(
    folder: Path,
    road: Road = ROADS["plain"],
    *,
    topics: Mapping[str, int] | None = None,
    kafka: Mapping[str, Any] | None = None,
    tables: Mapping[str, Any] | None = None,
    python_path: Path | None = None,
) -> Iterator[KafkaServed]:
    """A new server whose only topic is Kafka's own internal one, as a broker has it that had a consumer.

    ``topics`` are more of them, with their partitions; ``kafka`` are more settings of its table, ``tables`` other
    tables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "catalog.sqlite"
    with SqliteCatalog(path) as catalog:
        for mechanism in (_SCRAM, "SCRAM-SHA-512"):
            made = derive_credential(mechanism, PASSWORD.encode())
            row = ScramRow(USER, mechanism, made.iterations, made.salt, made.stored_key, made.server_key)
            catalog.put_kafka_user(row)
        internal = TopicName.parse("persistent://public/default/__consumer_offsets")
        catalog.create(internal, partitions=1)
        for name, partitions in (topics or {}).items():
            catalog.create(TopicName.parse(f"persistent://public/default/{name}"), partitions=partitions)
    table: dict[str, Any] = {"listen": "127.0.0.1:0", **(kafka or {})}
    if road.mechanism is not None:
        table["sasl"] = {"mechanisms": [road.mechanism]}
    ca = None
    if road.tls:
        authority = Authority(folder)
        issued = authority.issue("kafka")
        ca = str(authority.ca)
        table["tls"] = {
            "listen": "127.0.0.1:0",
            "certificate": str(issued.certificate),
            "key": str(issued.key),
        }
    settings = {"catalog": {"path": str(path)}, "kafka": table, **(tables or {})}
    with Served(folder, settings, python_path=python_path) as served:
        address = served.ready["kafka+ssl" if road.tls else "kafka"]
        clients = Server(address, ca=ca)
        if road.mechanism is not None:
            clients = Server(address, road.mechanism, USER, PASSWORD, ca)
        yield KafkaServed(served, clients, folder)
