"""The cluster behind a gateway, opened as the settings say."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Final

from broker_core.access.sessions import Sessions
from broker_core.client import default_client_version
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.servers.admission import FileBudget
from broker_core.settings import Settings, UpstreamSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions, gateway_mark, show_upstream

__all__ = ["opened_gateway"]

#: Connections to the brokers at once, for all principals.
_CONNECTIONS: Final = 256


async def opened_gateway(
    settings: Settings,
    forwarded: UpstreamSettings,
    metrics: Metrics,
    permits: Permits,
    stack: AsyncExitStack,
    *,
    identifies: bool,
) -> tuple[UpstreamCluster, Sessions | None]:
    """The cluster of ``forwarded``, which ends with ``stack``, and the credentials of clients if it passes them on.

    ``identifies``: clients have roles, whatever the settings say of authentication. Raises
    :exc:`~broker_core.upstream.pulsar.UpstreamUnusable`.
    """
    sessions = Sessions() if forwarded.forward == "client" or forwarded.original_auth_data else None
    upstream = UpstreamCluster(
        UpstreamOptions(
            forwarded,
            settings.pulsar,
            settings.shrink_guard,
            connections=FileBudget.upstream_share(_CONNECTIONS),
            client_version=f"{default_client_version()}+{gateway_mark(forwarded.service_url)}",
        ),
        metrics,
        sessions=sessions,
        identifies=identifies or settings.authentication.is_on,
        permits=permits,
    )
    stack.push_async_callback(upstream.stop)
    show_upstream(metrics, upstream)
    await upstream.start()
    return upstream, sessions
