"""Which server a listing is read from: a replica that is not too far behind, else the primary.

A replica answers only for a state that is new enough: the version of the namespace there is compared with the one that
the primary has now, an index look-up at each, so that what was written before a listing was asked for is in it (with
``max_lag`` 0). Where a replica is behind, fails or cannot be compared, the primary answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import structlog

from broker_core.errors import ListingFailed
from broker_core_postgres.connect.connection_pool import PooledConnection, PostgresPool
from broker_core_postgres.connect.failures import DRIVER_ERRORS, failure_of

__all__ = ["ReplicaChooser"]

_log = structlog.get_logger(__name__)

#: Which server a listing may be read from, for the metrics.
_CHOICES: Final = ("primary", "replica", "replica_behind", "replica_failed")
#: The state of a namespace; no row where it was never loaded.
_VERSION: Final = "SELECT version FROM broker_core.namespaces WHERE namespace = $1"


class ReplicaChooser:
    """Chooses for each listing; ``max_lag`` is how many versions a replica may be behind for the namespace."""

    def __init__(self, primary: PostgresPool, replicas: Sequence[PostgresPool], max_lag: int) -> None:
        #: How listings chose a server: ``primary``, ``replica``, ``replica_behind``, ``replica_failed``.
        self.choices: Counter[str] = Counter(dict.fromkeys(_CHOICES, 0))
        #: By name of a replica's pool, how many versions it was behind when it was last compared.
        self.lags: dict[str, int] = {}
        #: How many versions a replica that answers may be behind; 0 where there are none.
        self.max_lag = max_lag if replicas else 0
        self._primary = primary
        self._replicas = tuple(replicas)
        self._turn = 0

    async def acquire(self, deadline: float, namespace: str | None) -> tuple[PostgresPool, PooledConnection]:
        """A connection and the pool that takes it back; without a ``namespace`` one to the primary.

        Raises :exc:`~broker_core.errors.ListingFailed` where the primary cannot be asked.
        """
        if self._replicas and namespace is not None:
            newest = await self._version(
                self._primary, await self._primary.acquire(deadline), namespace, keep=False
            )
            for pool in self._in_turn():
                if newest is None:  # never loaded: that is the primary's to say
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
        """A connection to a replica that has ``newest``, less the allowed lag; ``None`` where it cannot answer."""
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
        """The version at a server; ``held`` is given back, unless it is to be kept and nothing failed."""
        raised: BaseException | None = None
        try:
            value = await held.connection.fetchval(_VERSION, namespace)
            return None if value is None else int(value)
        except DRIVER_ERRORS as error:
            raised = error
            raise failure_of(error) from error
        except BaseException as error:
            raised = error
            raise
        finally:
            if raised is not None or not keep:
                pool.release(held, raised)
