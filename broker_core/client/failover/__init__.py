"""Failover between the addresses of a service: their health, pauses, and pools of connections under one limit.

The lookup client uses it for the servers of its service URL, and the gateway for the brokers of its cluster.
"""

from broker_core.client.failover.address_health import AddressHealth
from broker_core.client.failover.connection_places import ConnectionPlaces
from broker_core.client.failover.connection_pool import ConnectionPool, PoolOptions

__all__ = ["AddressHealth", "ConnectionPlaces", "ConnectionPool", "PoolOptions"]
