"""The web service of a cluster's brokers (``upstream.admin_url``), for answers that the binary protocol lacks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from broker_core.access import Asker
from broker_core.client import ClientTls, Credentials, HttpService
from broker_core.concurrency import TasksByKey, in_thread
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.memory import BoundedCache
from broker_core.names import NamespaceName
from broker_core.upstream.cluster_tls import brokers_tls
from broker_core.upstream.pulsar.broker_credentials import Identities, Identity, Principal
from broker_core.upstream.pulsar.broker_failures import broker_failures
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections

__all__ = ["ClusterNamespaces", "KnownNamespaces", "web_service"]

#: Seconds for which read namespaces are taken for current: a client that types asks with each key.
_FRESH: Final = 10.0
#: Bytes of all names of one answer, and of the kept ones.
_MOST: Final = 64 * 1024 * 1024
_KEPT: Final = 16 * 1024 * 1024
#: Bytes that a name takes besides its characters, about.
_EACH: Final = 64
#: Principals for which the cluster is asked at a time.
_AT_A_TIME: Final = 2


class KnownNamespaces(NamedTuple):
    """Names of namespaces in order, and whether they are all that the client may know of."""

    names: Sequence[str]
    complete: bool


def web_service(options: UpstreamOptions, identity: Identity, most: int) -> HttpService:
    """The web service for questions of a principal, with answers of ``most`` bytes at most; the caller closes it."""
    url = options.upstream.admin_url
    assert url is not None
    tls = brokers_tls(options.upstream.tls) or ClientTls()
    return HttpService(
        url,
        client_version=options.client_version or "broker-core",
        credentials=identity.credentials if identity.credentials.data is not None else Credentials(),
        tls=tls if url.startswith("https:") else None,
        connect_timeout=options.connect_timeout,
        max_answer=most,
        original_principal=None if identity.original is None else identity.original.name,
    )


class ClusterNamespaces:
    """The namespaces of a cluster for each principal, kept for ten seconds.

    For one event loop. ``connections`` decide whether the client or the gateway was refused.
    """

    def __init__(
        self, options: UpstreamOptions, identities: Identities, connections: UpstreamConnections
    ) -> None:
        self._options = options
        self._identities = identities
        self._connections = connections
        self._kept: BoundedCache[Principal, tuple[float, Sequence[str]]] = BoundedCache(_KEPT)
        self._questions: TasksByKey[Sequence[str]] = TasksByKey()
        self._places = asyncio.Semaphore(_AT_A_TIME)

    async def names(self, asker: Asker) -> Sequence[str]:
        """The names of all namespaces, in order. Raises :exc:`ListingFailed`."""
        try:
            with broker_failures(self._connections):
                return await self._names(self._identities.principal_of(asker))
        except ListingFailed as failure:
            if failure.cause is not Cause.DENIED:
                raise
            raise ListingFailed(
                f"The cluster lists its namespaces only for roles that may administer its tenants: {failure.message}",
                cause=Cause.DENIED,
                reason=failure.reason,
            ) from None

    async def stop(self) -> None:
        """Cancel all questions."""
        await self._questions.close()

    async def _names(self, principal: Principal) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        known = self._kept.get(principal)
        if known is not None and loop.time() - known[0] < _FRESH:
            return known[1]
        async with asyncio.timeout(self._options.listing_timeout):
            return await self._questions.result(principal, partial(self._ask, principal))

    async def _ask(self, principal: Principal) -> Sequence[str]:
        began = asyncio.get_running_loop().time()
        async with self._places:
            service = web_service(self._options, self._identities.identity_of(principal), _MOST)
            try:
                column = await service.namespaces()
            finally:
                await service.close()
        names = await in_thread(principal, _sorted, column)
        self._kept.put(principal, (began, names), column.nbytes + _EACH * len(names))
        return names


def _sorted(column: Any) -> Sequence[str]:
    """The names that a namespace can have here, in order: nothing else could be asked for."""
    return sorted(name for name in set(column.to_pylist()) if _is_name(name))


def _is_name(text: str) -> bool:
    try:
        return str(NamespaceName.parse(text)) == text
    except InvalidName:
        return False
