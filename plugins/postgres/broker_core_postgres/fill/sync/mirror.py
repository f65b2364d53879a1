"""One run of a mirror: read the source, compare, check the number of deletions, write the differences.

Everything readable is read before anything is written. Each namespace with differences is one transaction; the others
are not touched, and their versions stay.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from broker_core.plugin_cli import Deletions
from broker_core_postgres.connect import DRIVER_ERRORS
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.merge import MergeCounts, compare, merge, namespaces_of_database
from broker_core_postgres.fill.staging_table import StagingTables
from broker_core_postgres.fill.sync.differences import Difference, differences
from broker_core_postgres.fill.sync.mirror_source import MirrorSource
from broker_core_postgres.fill.sync.scope import EVERYTHING, Scope
from broker_core_postgres.fill.sync.stage_source import StagedSource, stage_source
from broker_core_postgres.fill.temporary_table import StagedTable
from broker_core_postgres.mirror_success import record_success

__all__ = ["Mirror", "MirrorReport"]

_HINT: Final = "`sync --dry-run` shows them"
_ONE_AT_A_TIME: Final = 0x62726F6B_73796E63  # "broksync" in ASCII, the key of the lock


@dataclass(slots=True)
class MirrorReport:
    """The changes of a run: ``counts`` of all namespaces, ``written`` of each changed one.

    ``failed`` has the namespaces and tenants that could not be read, ``unread`` the topics whose properties could not
    be read, each with the reason. These were left as they are.
    """

    namespaces: int = 0
    names: int = 0
    counts: MergeCounts = field(default_factory=MergeCounts)
    written: dict[str, MergeCounts] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether everything could be read."""
        return not self.failed and not self.unread


class Mirror:
    """A source that was staged by :meth:`read`, to be compared with the database and written.

    It uses one connection, which must not be used otherwise meanwhile.
    """

    def __init__(self, connection: Any, staged: StagedSource, scope: Scope, origin: str) -> None:
        self._connection = connection
        self._scope = scope
        self._origin = origin
        self._staged = staged
        self.report = MirrorReport(
            namespaces=len(staged.namespaces),
            names=staged.names,
            failed=staged.failed,
            unread=staged.unread,
        )

    @classmethod
    @asynccontextmanager
    async def read(
        cls,
        connection: Any,
        source: MirrorSource,
        scope: Scope = EVERYTHING,
        *,
        parallel: int = 4,
        writing: bool = True,
        progress: Callable[[int, int, int], None] | None = None,
    ) -> AsyncIterator[Mirror]:
        """Read a source. With ``writing`` an advisory lock refuses other mirrors of this database meanwhile."""
        if writing and not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _ONE_AT_A_TIME):
            raise FillingFailed("Another sync is writing into this database: let it finish")
        try:
            await connection.execute("SET statement_timeout = 0")
            await connection.execute("SET work_mem = '64MB'")
            staged = await stage_source(connection, source, scope, parallel=parallel, progress=progress)
            yield cls(connection, staged, scope, source.origin)
        finally:
            await _leave(connection, writing=writing)

    async def counts(self) -> dict[str, MergeCounts]:
        """The differences by namespace, also of namespaces without any."""
        return {
            namespace: await compare(self._connection, namespace, all_configs=self._staged.has_configs)
            for namespace in self._staged.namespaces
        }

    async def differences(self) -> AsyncIterator[Difference]:
        """Every topic that differs, by namespace."""
        async with self._connection.transaction():
            for namespace in self._staged.namespaces:
                async for difference in differences(
                    self._connection, namespace, configs=self._staged.has_configs
                ):
                    yield difference

    async def write(
        self, deletions: Deletions, *, progress: Callable[[int, int], None] | None = None
    ) -> MirrorReport:
        """Make the database equal to the source, and record the success if everything could be read.

        Raises :exc:`~broker_core.plugin_cli.MassDeletion` before it writes.
        """
        counts = await self.counts()
        deletions.check({namespace: count.loss for namespace, count in counts.items()}, _HINT)
        filled = await namespaces_of_database(self._connection)
        todo = [namespace for namespace, count in counts.items() if count or namespace not in filled]
        for number, namespace in enumerate(todo, 1):
            async with self._connection.transaction():
                merged = await merge(self._connection, namespace, all_configs=self._staged.has_configs)
            self.report.written[namespace] = merged
            self.report.counts += merged
            if progress is not None:
                progress(number, len(todo))
        if self.report.complete:
            await record_success(self._connection, str(self._scope), self._origin)
        return self.report


async def _leave(connection: Any, *, writing: bool) -> None:
    """Reset the session and release the lock, unless the connection broke."""
    if connection.is_closed():
        return
    try:
        await StagingTables(connection).each(StagedTable.drop)
        await connection.execute("RESET statement_timeout; RESET work_mem")
        if writing:
            await connection.execute(f"SELECT pg_advisory_unlock({_ONE_AT_A_TIME})")
    except DRIVER_ERRORS:
        return  # the first error is the one to report
