"""The lineage of a build, sent as OpenLineage's client is configured: by environment variables or a file of its own."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.lineage.build_events import BuildEvents
from broker_core_spark.batch.lineage.lineage_sender import LineageSender

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

    from broker_core_spark.batch.build_result import BuildResult

__all__ = ["lineage_client", "lineage_run", "sending_lineage"]

#: The environment variables of other integrations too.
_NAMESPACE: Final = "OPENLINEAGE_NAMESPACE"
_PARENT: Final = "OPENLINEAGE_PARENT_ID"


def lineage_run() -> tuple[str, str | None]:
    """The namespace of the job, and the run that started it, as the environment has them.

    Raises :exc:`BatchError` for a parent that is not ``NAMESPACE/JOB/RUN``, where the run is a UUID.
    """
    parent = os.environ.get(_PARENT) or None
    if parent is not None:
        try:
            UUID(parent.rsplit("/", 2)[2])
        except (IndexError, ValueError):
            raise BatchError(
                f"{_PARENT}={parent!r:.200}: expected NAMESPACE/JOB/RUN, and the run is a UUID"
            ) from None
    return os.environ.get(_NAMESPACE) or "default", parent


def lineage_client() -> OpenLineageClient:
    """The client of OpenLineage. Nothing is sent yet.

    Raises :exc:`BatchError` where it is not installed, says nowhere to send to, or has settings that it does not know.
    """
    try:
        from openlineage.client import OpenLineageClient
    except ImportError as error:
        raise BatchError("lineage needs the client of OpenLineage: pip install openlineage-python") from error
    logging.getLogger("openlineage").addHandler(logging.NullHandler())  # one line about a fault is enough
    try:
        client = OpenLineageClient()
        chosen = (client.config.transport or {}).get("type")
    except Exception as error:
        # Its message may have a key of the receiver.
        raise BatchError(f"the settings of OpenLineage are not valid ({type(error).__name__})") from error
    if not chosen and client.transport.kind == "console":
        raise BatchError(
            "no receiver of lineage: set OPENLINEAGE_URL, or OPENLINEAGE_CONFIG to a file with a transport"
        )
    return client


@contextmanager
def sending_lineage(
    client: OpenLineageClient, events: BuildEvents, warn: Callable[[str], None]
) -> Iterator[list[BuildResult]]:
    """Sends that a build starts, and how it ends: with the result that is put into the list, or with an error.

    An end by a signal (no :exc:`Exception`) is an abort. ``warn`` is called at most once, where events are not taken.
    """
    # Events are made on the thread too: a fault in one is none of the build.
    sender = LineageSender(lambda make: client.emit(make()), warn)
    sender.send(events.started)
    results: list[BuildResult] = []
    try:
        yield results
    except Exception as error:
        sender.send(partial(events.failed, error))
        raise
    except BaseException as error:
        sender.send(partial(events.failed, error, aborted=True))
        raise
    else:
        sender.send(partial(events.completed, results[0]))
    finally:
        sender.close()
