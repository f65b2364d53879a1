"""Refusals of watches; most clients then poll, some versions of Java stop discovering topics."""

from __future__ import annotations

import re
from typing import Final

import structlog

from broker_core.access import Asker
from broker_core.errors import Cause, ListingFailed, ServerError
from broker_core.metrics import Metrics

__all__ = ["WatchRefusals", "cannot_poll", "watch_not_allowed"]

_log = structlog.get_logger(__name__)

_JAVA: Final = re.compile(r"Pulsar-Java-v(\d{1,4})\.(\d{1,4})\.(\d{1,4})")
#: The first versions that poll after a refusal, by their branch; branches that are not here came later
#: (apache/pulsar#24104).
_POLLS: Final = {(3, 0): 11, (3, 3): 6, (4, 0): 4}
_FIRST_GOOD_BRANCH: Final = (4, 0)


def cannot_poll(client_version: str) -> bool:
    """Whether a client of this version learns of no more topics once a watch is refused to it."""
    found = _JAVA.match(client_version)
    if found is None:
        return False
    major, minor, patch = map(int, found.groups())
    if (major, minor) in _POLLS:
        return patch < _POLLS[major, minor]
    return (major, minor) < _FIRST_GOOD_BRANCH


def watch_not_allowed(why: str, reason: str) -> ListingFailed:
    """The refusal after which clients poll: ``reason`` is a label of the metrics."""
    return ListingFailed(
        f"Unable to create topic list watcher: {why}",
        cause=Cause.NOT_ALLOWED,
        code=ServerError.NotAllowedError,
        reason=reason,
    )


class WatchRefusals:
    """Reports refused watches to the operator, by a metric and the log."""

    def __init__(self, metrics: Metrics) -> None:
        self._count = metrics.counter(
            "watches_refused",
            "Watches that were refused, by reason, and by whether the client polls instead (stuck: it does not).",
            "reason",
            "client",
            known=tuple(
                (reason, kind) for reason in ("pattern", "properties") for kind in ("polls", "stuck")
            ),
        )

    def report(self, asker: Asker, namespace: str, failure: ListingFailed) -> None:
        """Report a refused watch."""
        is_final = failure.code is ServerError.NotAllowedError
        is_stuck = is_final and cannot_poll(asker.client_version)
        self._count(failure.reason, "stuck" if is_stuck else "polls")
        if is_stuck:
            _log.warning(
                "a watch is refused to a client that does not poll then: it learns of no new topics",
                peer=asker.remote_address,
                client=asker.client_version,
                namespace=namespace[:250],
                reason=failure.reason,
                message=failure.message,
            )
        elif is_final:
            _log.info(
                "a watch is refused, so that the client polls",
                peer=asker.remote_address,
                client=asker.client_version,
                namespace=namespace[:250],
                reason=failure.reason,
            )
