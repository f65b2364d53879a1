"""What makes a batch stop, each with a message that says what to change. Nothing is published then."""

from __future__ import annotations

from broker_core.errors import BrokerCoreError

__all__ = ["BatchError", "InvalidCatalogue", "InvalidPatterns", "TaskFailed"]


class BatchError(BrokerCoreError):
    """The batch cannot go on; the generation that is published stays as it is."""


class InvalidCatalogue(BatchError):
    """A source of topics that cannot be read, or has what is no topic's name."""


class InvalidPatterns(BatchError):
    """A source of questions that cannot be read; names the line."""


class TaskFailed(BatchError):
    """Spark gave a task up; the first reason that it gave."""
