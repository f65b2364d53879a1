"""The catalogue of topics that a broker holds itself, as use cases and servers know it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from broker_core.catalog import (
    AclRow,
    AclVersion,
    Allow,
    CatalogError,
    Edit,
    ImportReport,
    NamespaceCounts,
    ScramRow,
    TopicRecord,
    TopicWrite,
)
from broker_core.change_log import CatalogVersion
from broker_core.guards import Deletions
from broker_core.names import NamespaceName, TopicName

__all__ = ["AclReader", "TopicCatalog"]


class AclReader(Protocol):
    """The ACLs of namespaces; on one event loop."""

    def version_now(self, namespace: NamespaceName) -> AclVersion | None:
        """The state of a namespace's ACLs; ``None`` if it cannot be read at once."""

    async def read(self, namespace: NamespaceName) -> tuple[AclVersion, tuple[AclRow, ...]]:
        """All ACLs of a namespace with their version. Raises :exc:`~broker_core.errors.ListingFailed`."""

    def close(self) -> None:
        """Read nothing any more."""


class TopicCatalog(Protocol):
    """Reads and changes of topics, with versions; on one event loop, which no method keeps waiting.

    :class:`~broker_core.catalog.AsyncCatalog` implements it with an SQLite file. Each method raises
    :exc:`~broker_core.catalog.CatalogError` if the catalogue cannot be read, or written.
    """

    @property
    def catalog_id(self) -> str:
        """The random id within which versions can be compared."""

    @property
    def folder(self) -> Path:
        """The folder in which the bodies of imports are stored meanwhile."""

    @property
    def counts(self) -> NamespaceCounts:
        """The number of listed names of each namespace. To count may be long work: a thread calls its methods."""

    async def namespaces(self) -> list[NamespaceName]:
        """The namespaces that hold a topic, in order of their names."""

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace now; number 0 if it never had a topic."""

    async def topic(self, name: TopicName) -> TopicRecord | None:
        """The topic that is listed by this name, or has it itself; ``None`` if there is neither."""

    async def found(self, names: Sequence[TopicName]) -> list[tuple[TopicRecord | None, int]]:
        """By each name of one namespace the result of :meth:`topic`, and the partitions of exactly this name.

        They are 0 of a topic without, and of a partition; all of one moment.
        """

    def found_now(self, names: Sequence[TopicName]) -> list[tuple[TopicRecord | None, int]] | None:
        """The result of :meth:`found`, if the names are few and that takes no waiting."""

    def topics_by_id_now(self, ids: Sequence[uuid.UUID]) -> list[TopicRecord | None] | None:
        """The result of :meth:`topics_by_id`, if the ids are few and that takes no waiting."""

    async def topics_by_id(self, ids: Sequence[uuid.UUID]) -> list[TopicRecord | None]:
        """The topics with these ids, of all namespaces, in the order of the ids."""

    async def taken_names(self, namespace: NamespaceName, names: Iterable[str]) -> Mapping[str, str]:
        """By each local name that no new topic can have, the topic that has it, or the first one that collides."""

    async def edit(
        self, namespace: NamespaceName, edits: Sequence[Edit], deadline: float | None = None
    ) -> list[TopicWrite | CatalogError]:
        """Do edits of topics of one namespace in their order, in one transaction and one version.

        Each succeeds, or has an error of its own. Returned edits are on the disk. No transaction begins after
        ``deadline`` (loop time), nor after some seconds. Raises :exc:`~broker_core.errors.ListingFailed` with the cause
        ``QUEUE``; nothing of any edit was written then. A transaction that has begun is completed though its caller is
        cancelled, and the caller goes on with its result.
        """

    async def import_topics(
        self,
        namespace: NamespaceName,
        source: Callable[[], BinaryIO],
        *,
        exact: Deletions | None = None,
        check: Callable[[], None] = lambda: None,
        allow: Allow | None = None,
    ) -> ImportReport:
        """Merge topics of a file into a namespace, in one transaction, one import at a time.

        ``source``, ``check`` and ``allow`` are called by a thread: ``source`` gives the file, ``check`` is called
        between pieces of work, and ``allow`` with all topics that are to be changed; what they raise ends the import.
        ``exact`` removes topics that are not in the file. Raises :exc:`~broker_core.catalog.ImportRefused` and
        :exc:`~broker_core.guards.MassDeletion`.
        """

    async def change_kafka_acls(
        self, namespace: NamespaceName, add: Iterable[AclRow] = (), remove: Iterable[AclRow] = ()
    ) -> int:
        """Remove bindings, then add others, in one transaction; returns the version of the ACLs after it."""

    def acl_reader(self) -> AclReader:
        """A reader of the ACLs, which is closed by itself."""

    def kafka_user(self, name: str, mechanism: str) -> ScramRow | None:
        """The stored credential of a user for one mechanism of SCRAM; for any thread."""

    def kafka_users(self) -> list[ScramRow]:
        """All stored credentials, by name and mechanism; for any thread."""

    def put_kafka_user(self, *rows: ScramRow) -> None:
        """Add stored credentials, or replace them, in one transaction; for any thread."""

    def remove_kafka_user(self, name: str, *mechanisms: str) -> list[str]:
        """Remove stored credentials of a user in one transaction, and say which were there; for any thread."""

    def kafka_acls(self, namespace: NamespaceName) -> tuple[int, tuple[AclRow, ...]]:
        """The version of a namespace's ACLs, and all of them; for any thread."""
