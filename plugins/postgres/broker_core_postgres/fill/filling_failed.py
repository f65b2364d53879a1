"""The error of every command that fills the database."""

from __future__ import annotations

from broker_core.errors import BrokerCoreError

__all__ = ["FillingFailed"]


class FillingFailed(BrokerCoreError):
    """Topics were not written, or not compared. The database is unchanged unless the message says otherwise."""
