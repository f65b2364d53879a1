"""Loading a file of names into a namespace: all of it or nothing, however large.

The load is one transaction. COPY writes the file into a temporary table; the core's reader checks each line, so formats
and messages are those of ``broker-core topics import``. One merge then makes the namespace equal to the table. Other
writers of the namespace wait during the merge; all writers wait if it writes many names (:mod:`.trigram_part`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, repeat
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, Final, Literal

import numpy as np

from broker_core.catalog import TopicLines, TopicRows
from broker_core.change_log import ListedNames
from broker_core.names import DOMAINS, NamespaceName
from broker_core.plugin_cli import Deletions
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.merge import MergeCounts, compare, merge, version_of
from broker_core_postgres.fill.one_transaction import one_transaction
from broker_core_postgres.fill.partition_conflicts import resolve_conflicts
from broker_core_postgres.fill.staged_configs import copy_configs
from broker_core_postgres.fill.staged_ids import copy_ids, keep_free_ids
from broker_core_postgres.fill.staging_table import STAGED, StagingTables, copy_rows
from broker_core_postgres.fill.storage_limits import longest_local_name, storable_properties
from broker_core_postgres.fill.temporary_table import StagedTable

__all__ = ["MOST_NAMES", "USUAL_DELETIONS", "LoadReport", "Progress", "load_topics"]

#: Called as ``progress("read", bytes so far)`` from time to time, and once as ``progress("write", listed names)``.
Progress = Callable[[Literal["read", "write"], int], None]

#: The most names of a file, so that a mistaken number of partitions does not fill the disk.
MOST_NAMES: Final = 50_000_000

#: The bounds of deletions without options.
USUAL_DELETIONS: Final = Deletions()

#: The listed names of a topic in compact form, and the text of its properties if the file gives them.
_Row = tuple[str, str | None]

_NAMES_A_BLOCK: Final = 50_000
#: Bytes of ids, and of configs, that are kept in memory while the file is read, and bytes of them sent at once.
_ROWS_IN_MEMORY: Final = 16 * 1024 * 1024
_BLOCK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The changes of a load, made or to be made, in listed names (each partition is one).

    ``version`` is the namespace's afterwards; ``None`` if it was never filled, nor by a dry run. ``ahead`` is the text
    of a dry run if the load would be refused. ``renewed_ids`` are new topics whose id in the file another topic has, or
    had a while ago, so that they get a new one.
    """

    lines: int
    names: int
    added: int
    changed: int
    removed: int
    version: int | None
    ahead: str | None = None
    renewed_ids: int = 0

    @property
    def unchanged(self) -> int:
        """Names of the file that were in the database already, with the same properties."""
        return max(0, self.names - self.added - self.changed)


async def load_topics(
    connection: Any,
    namespace: NamespaceName,
    source: BinaryIO,
    *,
    add: bool = False,
    allow_empty: bool = False,
    deletions: Deletions = USUAL_DELETIONS,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> LoadReport:
    """Make a namespace hold exactly the topics of a file or, with ``add``, at least these.

    An existing topic keeps its id, and its properties, configs and replicas unless the file gives some. A new one has
    the id of the file, if that is free. Without differences, or with other configs alone, the version stays. A dry run
    counts the differences, and says whether the load would be refused. After an error the database is unchanged.

    Raises :exc:`~broker_core.catalog.CatalogError` for a wrong line, or for a topic beside a partition of its name with
    other properties; :exc:`FillingFailed` for a file without topics, unless ``allow_empty``; and
    :exc:`~broker_core.plugin_cli.MassDeletion` for more ``deletions`` than are allowed.
    """

    renewed = 0

    def check(counts: MergeCounts) -> None:
        deletions.check({str(namespace): counts.loss}, "`load --dry-run` counts them")

    async def settled() -> None:
        await resolve_conflicts(
            connection, str(namespace), add=add, both=file_rows.repeats, alone=file_rows.properties_only
        )
        if file_rows.ids:
            nonlocal renewed
            renewed = await keep_free_ids(connection, str(namespace))

    staging = StagingTables(connection)
    with closing(_FileRows(namespace, source, progress)) as file_rows:
        async with one_transaction(connection, dry_run=dry_run):
            await connection.execute("SET LOCAL statement_timeout = 0")
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            await connection.execute("SET LOCAL work_mem = '256MB'")
            await staging.each(StagedTable.create)
            await staging.names.copy(file_rows.blocks())
            if file_rows.ids:
                await staging.ids.copy(file_rows.ids.blocks())
            if file_rows.configs:
                await staging.configs.copy(file_rows.configs.blocks())
            if not file_rows.names and not add and not allow_empty:
                raise FillingFailed(
                    f"The file has no topics, and {namespace} would lose all of its own: --allow-empty if it is meant"
                )
            if file_rows.repeats:
                await staging.each(StagedTable.keep_each_once)
            await staging.each(StagedTable.analyze)
            if progress is not None:
                progress("write", file_rows.names)
            if dry_run:
                await settled()
                counts = await compare(connection, str(namespace), remove=not add)
                refusal = deletions.refusal({str(namespace): counts.loss})
                version = await version_of(connection, str(namespace))
            else:
                counts = await merge(
                    connection,
                    str(namespace),
                    remove=not add,
                    resolve_conflicts=settled,
                    check=check,
                    parts=True,
                )
                refusal, version = None, counts.version
            names = file_rows.names
            if file_rows.repeats or (file_rows.properties_only and add):
                names = await connection.fetchval(f"SELECT count(*) FROM {STAGED}")  # noqa: S608 - a constant
        return LoadReport(
            file_rows.lines,
            names,
            counts.added,
            counts.changed,
            counts.removed,
            version,
            None if refusal is None else refusal.ahead,
            renewed,
        )


class _LaterRows:
    """Rows for another COPY, kept while the file is read. True if there are some."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_ROWS_IN_MEMORY)  # noqa: SIM115 - closed by close
        self._any = False

    def __bool__(self) -> bool:
        return self._any

    def write(self, rows: bytes) -> None:
        """Add rows."""
        self._any = True
        self._file.write(rows)

    async def blocks(self) -> AsyncIterator[bytes]:
        """All rows, once the file is read."""
        self._file.seek(0)
        while block := self._file.read(_BLOCK):
            yield block

    def close(self) -> None:
        """Let go of the rows."""
        self._file.close()


class _FileRows:
    """The file as blocks of rows for COPY, and the facts found in it."""

    def __init__(self, namespace: NamespaceName, source: BinaryIO, progress: Progress | None) -> None:
        self._namespace = str(namespace)
        self._lines = TopicLines(
            namespace, source, checked=storable_properties, longest=longest_local_name(namespace), apart=True
        )
        self._progress = progress
        self._parts = 0
        self._hashes: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        self.names = 0
        #: Whether lines give properties of a topic alone, without its partitions.
        self.properties_only = False
        self.ids = _LaterRows()
        self.configs = _LaterRows()

    @property
    def lines(self) -> int:
        """Lines read so far."""
        return self._lines.lines

    @property
    def repeats(self) -> bool:
        """Whether the file may name a topic several times: in several parts, or with its partitions.

        Within a part each topic comes once, and its partitions once.
        """
        if len(self._hashes) < 2:
            return False
        hashes = np.concatenate(self._hashes)
        hashes.sort()
        return bool((hashes[1:] == hashes[:-1]).any())

    async def blocks(self) -> AsyncIterator[bytes]:
        """Rows for COPY. A thread reads the next part while the server takes this one."""
        parts = iter(self._lines)
        while True:
            rows = await asyncio.to_thread(next, parts, None)
            if rows is None:
                return
            for domain, of_domain in zip(DOMAINS, rows, strict=True):
                for block in self._blocks_of(domain, of_domain):
                    yield block
                self._keep_facts(domain, of_domain)
            self._parts += 1
            if self._progress is not None:
                self._progress("read", self._lines.bytes)

    def _keep_facts(self, domain: str, rows: TopicRows) -> None:
        ids = {name: each.topic_id for name, each in rows.facts.items() if each.topic_id is not None}
        if ids:
            self.ids.write(copy_ids(self._namespace, domain, ids, part=self._parts))
        configs = {
            name: (each.configs, each.replication)
            for name, each in rows.facts.items()
            if each.of_any_partitions
        }
        if configs:
            self.configs.write(copy_configs(self._namespace, domain, configs, part=self._parts))

    def close(self) -> None:
        """Let go of the ids and configs."""
        self.ids.close()
        self.configs.close()

    def _blocks_of(self, domain: str, rows: TopicRows) -> Iterator[bytes]:
        self._remember(domain, rows.topics)
        self._remember(domain, rows.partitions)
        properties_only = rows.properties_only
        self.properties_only = self.properties_only or bool(properties_only)
        stated = rows.topics if not properties_only else _without(rows.topics, properties_only)
        yield self._plain(domain, stated, stated=True)
        yield self._plain(domain, properties_only, stated=False)
        declared = {name: rows.partitions[name] for name in rows.declared}
        yield from self._partitions(domain, declared, stated=True)
        yield from self._partitions(domain, _without(rows.partitions, declared), stated=False)

    def _remember(self, domain: str, topics: dict[str, _Row]) -> None:
        salt = hash(domain)
        if topics:
            hashes = np.fromiter(map(hash, topics), np.int64, len(topics))
            self._hashes.append(hashes ^ np.int64(salt))

    def _plain(self, domain: str, topics: dict[str, _Row], *, stated: bool) -> bytes:
        self._count(len(topics))
        texts = [text for _, text in topics.values()]
        known = texts if any(text is not None for text in texts) else None
        return copy_rows(self._namespace, domain, list(topics), None, known, part=self._parts, stated=stated)

    def _partitions(self, domain: str, rows: dict[str, _Row], *, stated: bool) -> Iterator[bytes]:
        """Blocks of rows: one line may stand for a million partitions."""
        names: list[str] = []
        topics: list[str] = []
        properties: list[str | None] = []
        for topic, (listed, text) in rows.items():
            of = ListedNames.parse(listed)
            self._count(len(of))
            every = of.names(topic)
            while own := list(islice(every, _NAMES_A_BLOCK)):
                names += own
                topics += repeat(topic, len(own))
                properties += repeat(text, len(own))
                if len(names) >= _NAMES_A_BLOCK:
                    yield copy_rows(
                        self._namespace, domain, names, topics, properties, part=self._parts, stated=stated
                    )
                    names, topics, properties = [], [], []
        yield copy_rows(self._namespace, domain, names, topics, properties, part=self._parts, stated=stated)

    def _count(self, names: int) -> None:
        self.names += names
        if self.names > MOST_NAMES:
            raise FillingFailed(
                f"The file lists more than {MOST_NAMES} names (near line {self._lines.lines}): "
                "is a number of partitions mistaken?"
            )


def _without(rows: dict[str, _Row], others: dict[str, _Row]) -> dict[str, _Row]:
    return {name: row for name, row in rows.items() if name not in others}
