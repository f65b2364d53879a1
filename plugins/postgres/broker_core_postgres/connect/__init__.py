"""Connecting to PostgreSQL: addresses and passwords, pools of connections, replicas, and the meaning of failures."""

from broker_core_postgres.connect.connection_pool import PostgresPool
from broker_core_postgres.connect.failures import (
    DRIVER_ERRORS,
    REASONS,
    ConnectionBroke,
    failure_of,
    server_message,
)
from broker_core_postgres.connect.open_connection import (
    APPLICATION_NAME,
    CannotConnect,
    close_connection,
    connect,
    connect_first_host,
    connected,
    failure_text,
    parameters_of,
)
from broker_core_postgres.connect.server_pools import ServerPools
from broker_core_postgres.connect.sql_quoting import quote_identifier

__all__ = [
    "APPLICATION_NAME",
    "DRIVER_ERRORS",
    "REASONS",
    "CannotConnect",
    "ConnectionBroke",
    "PostgresPool",
    "ServerPools",
    "close_connection",
    "connect",
    "connect_first_host",
    "connected",
    "failure_of",
    "failure_text",
    "parameters_of",
    "quote_identifier",
    "server_message",
]
