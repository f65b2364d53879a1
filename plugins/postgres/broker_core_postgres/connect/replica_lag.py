"""Choosing the server for a listing: a replica that does not lag too much, or the primary.

The version of the namespace at the replica is compared with the version at the primary, by one index look-up at each.
With ``max_lag`` 0 an answer has everything that was written before the request. The primary answers if a replica lags,
fails or has no version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import structlog

from broker_core.errors import ListingFailed
from broker_core_postgres.connect.connection_pool import PooledConnection, PostgresPool

__all__ = ["ReplicaChooser"]

_log = structlog.get_logger(__name__)

#: The servers that a listing can be read from, with the reasons against a replica; labels of a metric.
_CHOICES: Final = ("primary", "replica", "replica_behind", "replica_failed")
#: The version of a namespace; no row for a namespace that was never loaded.
_VERSION: Final = "SELECT version FROM broker_core.namespaces WHERE namespace = $1"


class ReplicaChooser:
    """Chooses a server for each listing. ``max_lag`` is how many versions of a namespace a replica may lag."""

    def __init__(self, primary: PostgresPool, replicas: Sequence[PostgresPool], max_lag: int) -> None:
        #: Listings by their choice: ``primary``, ``replica``, ``replica_behind``, ``replica_failed``.
        self.choices: Counter[str] = Counter(dict.fromkeys(_CHOICES, 0))
        #: The number of versions that a replica lagged at the last comparison, by the name of its pool.
        self.lags: dict[str, int] = {}
        #: The versions that an answering replica may lag; 0 without replicas.
        self.max_lag = max_lag if replicas else 0
        self._primary = primary
        self._replicas = tuple(replicas)
        self._turn = 0

    async def acquire(self, deadline: float, namespace: str | None) -> tuple[PostgresPool, PooledConnection]:
        """Return a connection and its pool, which takes it back. Without ``namespace`` the server is the primary.

        Raises :exc:`~broker_core.errors.ListingFailed` if the primary cannot be asked.
        """
        if self._replicas and namespace is not None:
            newest = await self._version(
                self._primary, await self._primary.acquire(deadline), namespace, keep=False
            )
            for pool in self._in_turn():
                if newest is None:  # never loaded: only the primary can say so
                    break
                held = await self._on_replica(pool, deadline, namespace, newest)
                if held is not None:
                    self.choices["replica"] += 1
                    return pool, held
        self.choices["primary"] += 1
        return self._primary, await self._primary.acquire(deadline)

    def _in_turn(self) -> Sequence[PostgresPool]:
        self._turn = (self._turn + 1) % len(self._replicas)
        return (*self._replicas[self._turn :], *self._replicas[: self._turn])

    async def _on_replica(
        self, pool: PostgresPool, deadline: float, namespace: str, newest: int
    ) -> PooledConnection | None:
        """A connection to a replica whose version is within the allowed lag; ``None`` if it cannot answer."""
        try:
            held = await pool.acquire(deadline)
            version = await self._version(pool, held, namespace, keep=True)
        except ListingFailed as failure:
            self.choices["replica_failed"] += 1
            _log.debug("replica cannot answer", pool=pool.name, reason=failure.reason)
            return None
        if version is not None:
            self.lags[pool.name] = max(newest - version, 0)
            if version >= newest - self.max_lag:
                return held
        pool.release(held)
        self.choices["replica_behind"] += 1
        return None

    async def _version(
        self, pool: PostgresPool, held: PooledConnection, namespace: str, *, keep: bool
    ) -> int | None:
        """The version at a server. Releases ``held`` after a failure, and without ``keep`` after a success."""
        with pool.used(held, keep=keep) as connection:
            value = await connection.fetchval(_VERSION, namespace)
            return None if value is None else int(value)
