"""The broker: its parts made from the settings, the gateways before clusters, and the handle that plugins get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.broker.broker import Broker, ListenError
    from broker_core.broker.broker_handle import BrokerHandle
    from broker_core.broker.kafka_gateway import NamespaceTaken, check_namespace, cluster_options
    from broker_core.broker.opened_core import opened_pipeline

__all__ = [
    "Broker",
    "BrokerHandle",
    "ListenError",
    "NamespaceTaken",
    "check_namespace",
    "cluster_options",
    "opened_pipeline",
]

# Plugins import the handle without the servers.
__getattr__ = lazy_exports(
    __name__,
    {
        "Broker": ".broker",
        "BrokerHandle": ".broker_handle",
        "ListenError": ".broker",
        "NamespaceTaken": ".kafka_gateway",
        "check_namespace": ".kafka_gateway",
        "cluster_options": ".kafka_gateway",
        "opened_pipeline": ".opened_core",
    },
)
