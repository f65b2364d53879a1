"""LISTEN/NOTIFY: a connection beside the pool that receives the namespaces that changed.

A notification is only a hint: the broker drops what it keeps of the namespace. Listings read the version row anyway, so
a hint that is lost, doubled, late or forged changes no answer. Any user of the database can send one; a payload that is
no hint is ignored and counted.

A broken connection is replaced, with growing pauses. Then all versions are read once, and namespaces with a new version
count as hints, so that missed notifications do no harm. Probes find connections that are dead without an error.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any, Final

import structlog

from broker_core.errors import BrokerCoreError
from broker_core.names import NamespaceName
from broker_core_postgres.connect import (
    APPLICATION_NAME,
    DRIVER_ERRORS,
    ConnectionBroke,
    connect_first_host,
    server_message,
)
from broker_core_postgres.connect.libpq import ConnectionParameters

__all__ = ["CHANNEL", "VERSIONS_QUERY", "TopicsListener", "parse_hint"]

_log = structlog.get_logger(__name__)

#: The channel of the schema's triggers.
CHANNEL: Final = "broker_core_topics"
VERSIONS_QUERY: Final = "SELECT namespace, version FROM broker_core.namespaces"

#: Seconds between attempts to connect: first and last; they double in between.
_BACK_OFF: Final = (0.1, 30.0)
_CONNECT: Final = 10.0
#: Seconds between two calls of ``may_connect``.
_LOOK: Final = 0.25
_PROBE: Final = 30.0
#: Characters of a payload; the name of a namespace is far shorter. PostgreSQL allows 8,000 bytes.
_LONGEST: Final = 2000
#: Namespaces whose version is remembered, at 100 bytes each.
_REMEMBERED: Final = 200_000


def parse_hint(payload: str) -> tuple[NamespaceName, int] | None:
    """The namespace and version of a payload ``{"namespace": ..., "version": ...}``; ``None`` for any other payload."""
    if len(payload) > _LONGEST:
        return None
    try:
        hint = json.loads(payload)
        namespace, version = hint["namespace"], hint["version"]
        if type(version) is not int or not 0 <= version < 2**63 or not isinstance(namespace, str):
            return None
        return NamespaceName.parse(namespace), version
    except (ValueError, TypeError, KeyError, RecursionError):  # InvalidName is a ValueError
        return None


class TopicsListener:
    """Listens from :meth:`start` to :meth:`close`, and calls ``topics_changed(namespace)`` on the loop.

    ``versions_query`` reads ``(namespace, version)`` of all namespaces; ``None`` for a relation without versions.
    ``probe`` is in seconds. While ``may_connect()`` is false no connection is tried: on a server with few free
    connections, listings come first.
    """

    def __init__(
        self,
        parameters: ConnectionParameters,
        topics_changed: Callable[[NamespaceName], None],
        *,
        versions_query: str | None = VERSIONS_QUERY,
        probe: float = _PROBE,
        may_connect: Callable[[], bool] | None = None,
    ) -> None:
        self.connected = False
        #: Hints; payloads that were no hints; lost connections; namespaces that had changed after a loss.
        self.hints = 0
        self.ignored = 0
        self.losses = 0
        self.caught_up = 0
        self._parameters = parameters
        self._changed = topics_changed
        self._versions_query = versions_query
        self._probe = probe
        self._may_connect = may_connect
        #: The version that was read or notified last, by namespace. A notified one may be forged.
        self.versions: dict[str, int] = {}
        self._read_before = False
        self._pending: dict[NamespaceName, int] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start connecting, without waiting for it."""
        self._task = asyncio.get_running_loop().create_task(self._listen(), name="postgres listen")

    async def close(self) -> None:
        """Stop; no hint comes after that."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._pending.clear()

    async def _listen(self) -> None:
        attempts = 0
        first, last = _BACK_OFF
        while True:
            if self._may_connect is not None and not self._may_connect():
                await asyncio.sleep(_LOOK)
                continue
            try:
                await self._session()
            except (BrokerCoreError, *DRIVER_ERRORS) as error:
                if self.connected:
                    attempts = 0
                    self.losses += 1
                if attempts == 0:
                    _log.warning(
                        "not listening for changes of topics: each listing still reads its version",
                        error=server_message(error),
                    )
            finally:
                self.connected = False
            delay = min(last, first * 2.0 ** min(attempts, 16))
            attempts += 1
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - spreads servers that restart at once

    async def _session(self) -> None:
        """Listen on one connection until it breaks. Always ends with an exception."""
        connection, host = await connect_first_host(
            self._parameters,
            application_name=f"{APPLICATION_NAME} listen",
            timeout=_CONNECT,
            statement_cache_size=0,
        )
        broken = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _connection: broken.set())
            await connection.add_listener(CHANNEL, self._received)
            # After LISTEN, so that no change falls in between.
            moved = await self._reread(connection)
            self.connected = True
            _log.info("listening for changes of topics", host=str(host), changed_meanwhile=moved)
            while not broken.is_set():
                try:
                    async with asyncio.timeout(self._probe):
                        await broken.wait()
                except TimeoutError:
                    async with asyncio.timeout(_CONNECT):
                        await connection.fetchval("SELECT 1")
            raise ConnectionBroke("the connection was closed")
        finally:
            connection.terminate()

    async def _reread(self, connection: Any) -> int:
        """Hint at the namespaces whose version changed since the last connection; returns their number."""
        if self._versions_query is None:
            return 0
        moved = 0
        found: dict[str, int] = {}
        async with connection.transaction(readonly=True):
            async for namespace, version in connection.cursor(self._versions_query, prefetch=5000):
                if self._read_before and self.versions.get(namespace) != version:
                    moved += 1
                    self._notify(namespace)
                if len(found) < _REMEMBERED:
                    found[namespace] = version
        for namespace in self.versions.keys() - found.keys():
            moved += 1
            self._notify(namespace)
        self.versions = found
        self._read_before = True
        self.caught_up += moved
        return moved

    def _received(self, _connection: Any, _pid: int, _channel: str, payload: str) -> None:
        hint = parse_hint(payload)
        if hint is None:
            self.ignored += 1
            return
        self.hints += 1
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._flush)
        self._pending[hint[0]] = hint[1]  # the last notification of a packet counts

    def _flush(self) -> None:
        pending, self._pending = self._pending, {}
        for namespace, version in pending.items():
            name = str(namespace)
            if name in self.versions or len(self.versions) < _REMEMBERED:
                self.versions[name] = version
            self._changed(namespace)

    def _notify(self, name: str) -> None:
        try:
            namespace = NamespaceName.parse(name)
        except ValueError:  # no valid name: no listing can ask for it
            return
        self._changed(namespace)
