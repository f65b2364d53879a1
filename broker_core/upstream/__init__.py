"""The cluster behind a lookup gateway: relays lookups to it, and asks it for the topics that no plugin answers for."""

from __future__ import annotations

from broker_core.upstream.lister import UpstreamLister
from broker_core.upstream.options import UpstreamOptions
from broker_core.upstream.pool import ConnectionPool
from broker_core.upstream.relay import LookupRelay
from broker_core.upstream.upstream import Upstream

__all__ = ["ConnectionPool", "LookupRelay", "Upstream", "UpstreamLister", "UpstreamOptions"]
