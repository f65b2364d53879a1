"""Errors that stop a batch before it publishes. Their messages say what to change."""

from __future__ import annotations

from broker_core.errors import BrokerCoreError

__all__ = [
    "BatchError",
    "InvalidCatalogue",
    "InvalidPatterns",
    "NothingToKeep",
    "SessionFailed",
    "TaskFailed",
]


class BatchError(BrokerCoreError):
    """The batch cannot go on. The published generation stays."""


class InvalidCatalogue(BatchError):
    """A source of topics cannot be read, or has an invalid name."""


class InvalidPatterns(BatchError):
    """A source of questions cannot be read. The message names the line."""


class NothingToKeep(BatchError):
    """An incremental build keeps nothing of the published generation: it is a full one. The message says why."""


class SessionFailed(BatchError):
    """No Spark session. The message says why."""


class TaskFailed(BatchError):
    """Spark gave up a task. The message is its first reason."""
