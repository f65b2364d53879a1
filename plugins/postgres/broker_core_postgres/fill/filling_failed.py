"""The one error of everything that fills the database: what was asked was not done, and the message says why."""

from __future__ import annotations

from broker_core.errors import BrokerCoreError

__all__ = ["FillingFailed"]


class FillingFailed(BrokerCoreError):
    """Topics were not written (or not compared); the database is as it was, unless the message says otherwise."""
