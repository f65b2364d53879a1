"""What a client is told of a change that the catalogue refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import structlog

from broker_core.catalog import (
    CatalogBusy,
    CatalogError,
    CatalogFull,
    CatalogReadOnly,
    ImportRefused,
    PairRefused,
    PartitionCountRefused,
    PartitionedRefused,
    PartitionRefused,
    PreconditionFailed,
    TopicExists,
    TopicInvalid,
    TopicMissing,
)
from broker_core.errors import Cause
from broker_core.mass_deletion_guard import MassDeletion
from broker_core.servers.http.api.operation import Reply
from broker_core.servers.http.api.problem_details import RequestRefused, refused

__all__ = ["PROBLEMS", "RETRY_AFTER", "write_problem", "write_problems"]

#: Seconds after which a client may try again that met another writer.
RETRY_AFTER: Final = "1"

_STATUS: Final[Mapping[type[CatalogError], int]] = {
    TopicInvalid: 400,
    TopicMissing: 404,
    TopicExists: 409,
    PairRefused: 409,
    PartitionRefused: 409,
    PartitionCountRefused: 409,
    PartitionedRefused: 409,
    PreconditionFailed: 412,
}

#: The errors of changes besides those of all operations, as they are declared.
PROBLEMS: Final[Mapping[int, Reply]] = {
    501: Reply("The server has no catalogue of its own: the brokers behind it hold the topics."),
    507: Reply("The disk of the server is full; nothing was changed."),
}

_log = structlog.get_logger(__name__)


@contextmanager
def write_problems() -> Iterator[None]:
    """Raise what the catalogue raises inside as the error for the client."""
    try:
        yield
    except (CatalogError, MassDeletion) as error:
        raise write_problem(error) from error


def write_problem(error: CatalogError | MassDeletion) -> RequestRefused:
    """The error for the client. It names no file of the server; the log does."""
    if isinstance(error, MassDeletion):
        loss = error.refusal.loss
        return refused(
            409,
            f"{error.refusal.why}: nothing was written; max_deletions={loss.removed} allows it",
            there=loss.there,
            deletions=loss.removed,
        )
    if isinstance(error, ImportRefused):
        return refused(400, f"line {error.line} of the body: {error.reason}", line=error.line)
    if (status := _STATUS.get(type(error))) is not None:
        return refused(status, str(error))
    if isinstance(error, CatalogBusy):
        return refused(
            503,
            "another writer keeps the catalogue: nothing was changed, try again later",
            Cause.UNAVAILABLE,
            headers={"Retry-After": RETRY_AFTER},
        )
    _log.error("a change of topics over HTTP failed", error=str(error))
    if isinstance(error, CatalogReadOnly):
        return refused(403, "the catalogue of this server can only be read", Cause.NOT_ALLOWED)
    if isinstance(error, CatalogFull):
        return refused(507, "the disk of the catalogue is full: nothing was changed", Cause.CATALOG)
    return refused(500, "the catalogue cannot be written; the log of the server says more", Cause.CATALOG)
