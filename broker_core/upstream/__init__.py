"""The cluster behind a gateway, by the protocol it speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.upstream.cluster_tls import brokers_tls

__all__ = [
    "brokers_tls",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "brokers_tls": ".cluster_tls",
    },
)
