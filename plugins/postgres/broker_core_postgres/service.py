"""The running plugin: pools, lister, listener and automatic migration, and the check of each new connection.

A database that is down at the start may come up later: the broker starts, and listings fail until then. A database that
is reachable but unusable (another schema, a relation that breaks its contract) ends the start with advice; found later,
listings fail with the same text. An older schema is migrated first if the user may; a long migration goes on in the
background.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

from broker_core.errors import BrokerCoreError, ListingFailed
from broker_core.names import NamespaceName
from broker_core_postgres.changes import VERSIONS_QUERY, PostgresChangeLog, TopicsListener, VersionHistory
from broker_core_postgres.connect import ServerPools, parameters_of
from broker_core_postgres.listing import (
    ID_OF_RELATION,
    OwnRelation,
    PostgresDescriber,
    PostgresLister,
    RelationRefused,
    RowSource,
    check_relation,
)
from broker_core_postgres.metrics import PostgresMetrics
from broker_core_postgres.mirror_success import MirrorWatch
from broker_core_postgres.schema import (
    MIGRATE_COMMAND,
    AutoMigration,
    SchemaMismatch,
    SchemaTooOld,
    check_schema,
    read_trigram_index,
)
from broker_core_postgres.settings import PostgresSettings
from broker_core_postgres.status import ask_status

__all__ = ["SESSION", "DatabaseRefused", "PostgresService"]


#: Settings of every session. A listing is shorter than JIT compilation or the start of parallel workers. Without
#: statistics, right after a load, the planner would scan the table instead of an index.
SESSION: Final = {"jit": "off", "enable_seqscan": "off", "max_parallel_workers_per_gather": "0"}

#: Seconds that the start waits for a migration, of the 60 seconds of a start.
_START_PATIENCE: Final = 40.0
#: Seconds that the screen of the explorer waits for the state of the database: less than a plugin's usual deadline.
_STATUS_PATIENCE: Final = 3.0


class DatabaseRefused(ListingFailed):
    """The database is reachable, but listings cannot be served from it. The message says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="schema")


class PostgresService:
    """The plugin's parts, from :meth:`start` to :meth:`close`. ``topics_changed`` and ``report_problems`` are the
    broker's.

    Raises :exc:`.DsnError` and :exc:`.RelationRefused` for settings that cannot be read.
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
            # One plan fits all values of the plugin's own table; of another relation that is unknown.
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
                else RowSource(self.relation.sql, ID_OF_RELATION, versions=False, own_index=False)
            ),
        )
        self.describer = PostgresDescriber(
            self.server_pools,
            self.lister.source,
            settings,
            self.metrics.queries,
        )
        #: The change log; ``None`` for a relation of the operator's own, which has none.
        self.change_log = PostgresChangeLog(self.server_pools) if self.relation is None else None
        self.listener: TopicsListener | None = None
        # A pooler of transactions cannot LISTEN.
        if settings.listen and (settings.listen_dsn is not None or settings.prepared_statements == "on"):
            self.listener = TopicsListener(
                parameters_of(settings, settings.listen_dsn),
                topics_changed or _nobody_keeps,
                versions_query=VERSIONS_QUERY if self.relation is None else None,
                may_connect=lambda: not self.server_pools.primary.down,
            )
        #: ``None`` for a relation of the operator's own, which the plugin's mirrors do not fill.
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
        if self.listener is not None:
            self.listener.start()
        if self.mirrors is not None:
            self.mirrors.start()

    async def close(self) -> None:
        """Close all connections; listings under way fail."""
        await self.auto_migration.close()
        if self.listener is not None:
            await self.listener.close()
        if self.mirrors is not None:
            await self.mirrors.close()
        await self.server_pools.close()
        self.lister.close()

    async def status(self) -> dict[str, Any]:
        """The state of the database, asked now, of the pools and the listener, and ``problems``: a line for each."""
        problems = [
            f"{pool.name}: {pool.failure.message}"
            for pool in self.server_pools.pools
            if pool.failure is not None
        ]
        database: dict[str, Any] | None = None
        try:
            found = await asyncio.wait_for(
                ask_status(self.settings, application="broker-core explorer", namespaces=False),
                _STATUS_PATIENCE,
            )
        except TimeoutError:
            problems.append(f"the database did not answer within {_STATUS_PATIENCE:g} s")
        except BrokerCoreError as error:
            problems.append(str(error))
        else:
            database = found.as_values()
            problems += [found.problem] if found.problem is not None else []
        return {
            "database": database,
            "problems": list(dict.fromkeys(problems)),
            "pools": [
                {
                    "name": pool.name,
                    "server": None if pool.host is None else str(pool.host),
                    "up": not pool.down,
                    "idle": pool.idle,
                    "in_use": pool.in_use,
                    "most": pool.settings.pool_max,
                    "waiting": pool.waiting,
                    "refused": pool.refused,
                }
                for pool in self.server_pools.pools
            ],
            "listening": None if self.listener is None else self.listener.connected,
            "history_breaks": self.history.breaks,
            "retries": self.server_pools.retries,
        }

    async def check(self, connection: Any) -> None:
        """Check the database of a new connection. Raises :exc:`DatabaseRefused`."""
        try:
            if self.relation is not None:
                lockable = await check_relation(
                    connection, self.relation, properties=bool(self.settings.property_keys)
                )
                self.server_pools.lock = self.relation.sql if lockable else None
                # Only the setting says whether this relation has an index of substrings.
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
        """Start a migration, and return the text that listings fail with until it is done."""
        if self.auto_migration.start() is not None:
            return f"{old}; it is being migrated"
        return f"{self.auto_migration.failure or old}"


def _report(report_problems: Callable[[Collection[str]], None], failure: ListingFailed | None) -> None:
    """Report a failure, or its end: the broker then asks the plugin again at once, whatever its breaker has counted."""
    report_problems(() if failure is None else (failure.message,))


def _nobody_keeps(_namespace: NamespaceName) -> None:
    """Do nothing, in place of the broker's callback if there is no broker."""
