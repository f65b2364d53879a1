"""A server of pages without sockets, over a catalogue, ACLs, and rows that only a cluster has, for tests."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from broker_core.catalog import SqliteCatalog
from broker_core.kafka.acls.bindings import AclBinding, Operation, PatternType, Permission, ResourceType
from broker_core.kafka.acls.compiled_masks import NamedChunk
from broker_core.names import TopicName
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.services import KafkaServices
from broker_core.wire.kafka import Api, Fields, Reader, Writer, read_response, response_frame
from tests.support.kafka_acls import AllowAll
from tests.support.kafka_calls import call_of, services_of
from tests.support.kafka_page_rows import ClusterRows
from tests.support.kafka_topics import NAMESPACE, create, kafka_topics

__all__ = ["PageServer", "SomeAcls", "page_server"]


class SomeAcls(AllowAll):
    """Nothing with an ``x`` in front may be described; there are ACLs of several patterns with one name."""

    enabled = True

    def __init__(self) -> None:
        super().__init__()
        #: The resources that ACLs are about.
        self.resources = ["a", "b", "*", "\uffee", "\U00010000"]

    def bindings(self, _call: Any) -> tuple[AclBinding, ...]:
        return tuple(
            AclBinding(kind, name, pattern, "User:ann", "*", operation, Permission.ALLOW)
            for kind in (ResourceType.TOPIC, ResourceType.GROUP)
            for name in self.resources
            for pattern in (PatternType.LITERAL, PatternType.PREFIXED)
            for operation in (Operation.READ, Operation.WRITE)
        )

    def allows(self, _call: Any, _operation: Operation, _kind: ResourceType, name: str) -> bool:
        return not name.startswith("x")

    def chunk_mask(self, _call: Any, _operation: Operation, chunk: NamedChunk) -> Any:
        return np.array([not name.startswith(b"x") for name in chunk.names.to_pylist()])

    def chunk_operations(self, _call: Any, chunks: Any) -> list[Any]:
        return [np.array([len(name) for name in chunk.names.to_pylist()], np.int32) for chunk in chunks]

    def topic_operations(self, _call: Any, name: str) -> int:
        return len(name)


@dataclass(repr=False)
class PageServer:
    """``ids`` are those of the topics by name; groups, transactions, producers and reassignments are ``rows``."""

    runner: asyncio.Runner
    services: KafkaServices
    catalog: SqliteCatalog
    acls: SomeAcls
    rows: ClusterRows
    ids: dict[str, uuid.UUID] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._handlers = {**HANDLERS, **self.rows.handlers()}

    def create(self, name: str, partitions: int) -> None:
        """Make a topic."""
        self.ids[name] = create(self.catalog, name, partitions).topic_id

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self.catalog.delete(TopicName("persistent", NAMESPACE, name))
        del self.ids[name]

    @property
    def shown(self) -> dict[str, uuid.UUID]:
        """The ids of the topics that the asker may see."""
        return {name: topic_id for name, topic_id in self.ids.items() if not name.startswith("x")}

    def ask(self, api: Api, version: int, body: Fields, *, unreadable: bool = False) -> Fields:
        """What a client reads; ``unreadable``: its cursor is."""
        writer = Writer()
        api.write_request(writer, body | ({"cursor": None} if unreadable else {}), version)
        message = writer.joined()
        if unreadable:  # one tag, of one byte that is no cursor
            message = message[:-1] + b"\x01\x91\x4e\x01\x7f"
        read = api.read_request(Reader(message), version)
        call = call_of(api, version, read, role="ann", services=self.services)
        row = self._handlers[api.key]

        async def answer() -> Fields:
            fields = await row.answered(call)
            call.release()
            return fields

        frame = b"".join(response_frame(api, version, 1, self.runner.run(answer())))
        return read_response(api, version, frame[4:])[1]


@contextmanager
def page_server(folder: Path, rows: ClusterRows, cap: int) -> Iterator[PageServer]:
    """A server without sockets; ``cap`` is the most that a page has."""
    acls = SomeAcls()
    with SqliteCatalog(folder / "catalog.sqlite") as catalog, asyncio.Runner() as runner:
        topics = kafka_topics(catalog, authorizer=acls)
        m = runner.run(topics.__aenter__())
        services = services_of(
            topics=m.topics,
            named=m.named,
            authorizer=acls,
            max_request_pagination_size_limit=cap,
            max_request_partition_size_limit=3,
        )
        yield PageServer(runner, replace(services, pipeline=m.pipeline), catalog, acls, rows)
        services.large_requests.close()
        runner.run(topics.__aexit__(None, None, None))
