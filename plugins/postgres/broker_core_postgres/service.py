"""The parts of the plugin while a broker runs: the pool, the lister, what listens, and what is checked of a database.

A database that is down at the start is one that comes up later: the server starts, and listings fail until then. One
that is there but cannot be served from (another schema, a relation that breaks its contract) ends the start with what
to do; found later, listings fail with the same words. An older schema is migrated first, where the user may: that goes
on beside the server where it takes longer than a start may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

import structlog

from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from broker_core_postgres.changes.change_log import PostgresChangeLog
from broker_core_postgres.changes.listen_notify import VERSIONS_QUERY, TopicsListener
from broker_core_postgres.changes.version_history import VersionHistory
from broker_core_postgres.connect.open_connection import parameters_of
from broker_core_postgres.connect.server_pools import ServerPools
from broker_core_postgres.fill.sync.last_success import MirrorWatch
from broker_core_postgres.listing.describe_topics import PostgresDescriber
from broker_core_postgres.listing.lister import PostgresLister
from broker_core_postgres.listing.listing_sql import RowSource
from broker_core_postgres.listing.own_relation import OwnRelation, RelationRefused, check_relation
from broker_core_postgres.metrics import PostgresMetrics
from broker_core_postgres.schema.auto_migrate import AutoMigration
from broker_core_postgres.schema.schema_version import (
    MIGRATE_COMMAND,
    SchemaMismatch,
    SchemaTooOld,
    check_schema,
)
from broker_core_postgres.schema.trigram_index import read_trigram_index
from broker_core_postgres.settings import PostgresSettings

__all__ = ["SESSION", "DatabaseRefused", "PostgresService"]

_log = structlog.get_logger(__name__)

#: Set for every session. A listing is short: compiling it, or starting processes for it, takes longer than it does.
#: And it reads by an index, whatever the statistics of a table say that nobody has analyzed yet.
SESSION: Final = {"jit": "off", "enable_seqscan": "off", "max_parallel_workers_per_gather": "0"}

#: Seconds that the start waits for a migration, of the 60 that it may take.
_START_PATIENCE: Final = 40.0


class DatabaseRefused(ListingFailed):
    """The database is there and cannot be served from; the message says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="schema")


class PostgresService:
    """Everything from :meth:`start` to :meth:`close`. ``topics_changed`` and ``report_problems`` are the broker's.

    Raises :exc:`~broker_core_postgres.connect.open_connection.DsnError` and :exc:`.RelationRefused` for
    settings that cannot be read.
    """

    def __init__(
        self,
        settings: PostgresSettings,
        topics_changed: Callable[[NamespaceName], None] | None = None,
        report_problems: Callable[[Collection[str]], None] | None = None,
    ) -> None:
        self.settings = settings
        self.relation = None if settings.relation is None else OwnRelation.parse(settings.relation)
        self.metrics = PostgresMetrics()
        self.history = VersionHistory(topics_changed, max_lag=settings.replica_max_lag)
        self.auto_migration = AutoMigration(settings)
        self.server_pools = ServerPools(
            settings,
            check=self.check,
            on_other_server=self.history.start_anew,
            on_down=None if report_problems is None else partial(_report, report_problems),
            session_settings=SESSION,
            # What plan is right for a relation of the operator's own is not known.
            one_plan=self.relation is None,
        )
        self.lister = PostgresLister(
            self.server_pools,
            settings,
            self.metrics.queries,
            self.history,
            source=(
                None
                if self.relation is None
                else RowSource(self.relation.sql, versions=False, own_index=False)
            ),
        )
        self.describer = PostgresDescriber(
            self.server_pools,
            self.lister.source,
            settings,
            self.metrics.queries,
        )
        #: For whoever follows changes; a relation of the operator's own has no log of them.
        self.change_log = PostgresChangeLog(self.server_pools) if self.relation is None else None
        self.listener: TopicsListener | None = None
        # Behind a pooler that pools transactions nobody can listen.
        if settings.listen and (settings.listen_dsn is not None or settings.prepared_statements == "on"):
            self.listener = TopicsListener(
                parameters_of(settings, settings.listen_dsn),
                topics_changed or _nobody_keeps,
                versions_query=VERSIONS_QUERY if self.relation is None else None,
                may_connect=lambda: not self.server_pools.primary.down,
            )
        #: A relation of the operator's own is filled by whoever owns it.
        self.mirrors = MirrorWatch(self.server_pools) if self.relation is None else None
        self.metrics.watch(self.server_pools, self.listener, self.history, self.mirrors)

    async def start(self) -> None:
        """Connect, if the database is there. Raises :exc:`DatabaseRefused`."""
        task = self.auto_migration.start()
        if task is not None:
            try:
                await asyncio.wait([task], timeout=_START_PATIENCE)
            except asyncio.CancelledError:
                await self.auto_migration.close()
                raise
        failure = await self.server_pools.start()
        if isinstance(failure, DatabaseRefused) and not self.auto_migration.under_way:
            await self.close()
            raise failure
        if failure is not None:
            _log.warning("PostgreSQL is not there yet: listings fail until it is", error=failure.message)
        if self.listener is not None:
            self.listener.start()
        if self.mirrors is not None:
            self.mirrors.start()

    async def close(self) -> None:
        """Close all connections; whatever is under way fails."""
        await self.auto_migration.close()
        if self.listener is not None:
            await self.listener.close()
        if self.mirrors is not None:
            await self.mirrors.close()
        await self.server_pools.close()
        self.lister.close()

    async def check(self, connection: Any) -> None:
        """Look at a new connection's database. Raises :exc:`DatabaseRefused`."""
        try:
            if self.relation is not None:
                lockable = await check_relation(
                    connection, self.relation, properties=bool(self.settings.property_keys)
                )
                self.server_pools.lock = self.relation.sql if lockable else None
                # Whether it has an index for substrings is the operator's to say.
                self.lister.trigrams = self.settings.trigrams == "on"
                return
            await check_schema(connection, reader=True)
        except SchemaTooOld as old:
            raise DatabaseRefused(self._too_old(old)) from None
        except (SchemaMismatch, RelationRefused) as error:
            raise DatabaseRefused(str(error)) from None
        if self.settings.trigrams == "off":
            return
        found = await read_trigram_index(connection)
        if found is None and self.settings.trigrams == "on":
            raise DatabaseRefused(
                f"trigrams is on, and the database has no index of trigrams: run `{MIGRATE_COMMAND}` as a user who may "
                "create the extension pg_trgm, or set trigrams to auto"
            )
        self.lister.trigrams = found is not None

    def _too_old(self, old: SchemaTooOld) -> str:
        """What listings fail with until the database is migrated, which is seen to."""
        if self.auto_migration.start() is not None:
            return f"{old}; it is being migrated"
        return f"{self.auto_migration.failure or old}"


def _report(report_problems: Callable[[Collection[str]], None], failure: ListingFailed | None) -> None:
    """Reported as gone, the broker asks the plugin again at once, however often it had failed."""
    report_problems(() if failure is None else (failure.message,))


def _nobody_keeps(_namespace: NamespaceName) -> None:
    """Stands in where there is no broker."""
