"""The error of connection strings, services and passwords."""

from __future__ import annotations

from broker_core.errors import BrokerCoreError

__all__ = ["DsnError"]


class DsnError(BrokerCoreError, ValueError):
    """A connection string, a service or a password cannot be used. The message never quotes a password."""
