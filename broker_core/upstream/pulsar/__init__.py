"""The cluster behind a lookup gateway: relays lookups to it, and asks it for the topics that no plugin answers for."""

from __future__ import annotations

from broker_core.upstream.pulsar.gateway_options import UpstreamOptions, gateway_mark
from broker_core.upstream.pulsar.lookup_relay import LookupRelay
from broker_core.upstream.pulsar.upstream_cluster import UpstreamCluster, UpstreamUnusable
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections
from broker_core.upstream.pulsar.upstream_lister import UpstreamLister
from broker_core.upstream.pulsar.upstream_metrics import show_upstream
from broker_core.upstream.pulsar.web_service import KnownNamespaces

__all__ = [
    "KnownNamespaces",
    "LookupRelay",
    "UpstreamCluster",
    "UpstreamConnections",
    "UpstreamLister",
    "UpstreamOptions",
    "UpstreamUnusable",
    "gateway_mark",
    "show_upstream",
]
