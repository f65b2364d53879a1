"""Noticing that the database went back: a version that was seen says nothing about the topics of another history.

Versions of a namespace only grow, so one that is smaller than one seen before means that a backup was restored, or that
a standby took over that had not received everything. The numbers will be used again, for other topics. So the history
has an *epoch*, a part of every version that the plugin names: it changes when a history is found to have ended, and
nothing that was kept under the old one (hashes, answers of the broker) is found again, not even what is kept late by a
listing that was under way.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import structlog

from broker_core.names import NamespaceName

__all__ = ["VersionHistory"]

_log = structlog.get_logger(__name__)

#: Namespaces whose last version is remembered, those that were asked for last; 200 bytes each.
_REMEMBERED: Final = 100_000


class VersionHistory:
    """The versions that were read; ``went_back(namespace)`` is called for each namespace whose answers are void.

    ``max_lag`` is how many versions a replica may be behind: an answer that is older by no more is none of the past.
    """

    def __init__(self, went_back: Callable[[NamespaceName], None] | None = None, *, max_lag: int = 0) -> None:
        self.epoch = 0
        self.breaks = 0
        self._went_back = went_back
        self._max_lag = max_lag
        self._seen: OrderedDict[NamespaceName, tuple[str, int, float]] = OrderedDict()

    def version(self, catalog_id: str, number: int, epoch: int) -> str:
        """What the broker is told: ``<catalogue id>:<number>``, with the epoch where that is not the first.

        ``epoch`` is that of the moment before the version was asked for.
        """
        return f"{catalog_id}:{number}" if epoch == 0 else f"{catalog_id}~{epoch}:{number}"

    def record(self, namespace: NamespaceName, catalog_id: str, number: int, *, asked: float) -> bool:
        """Note a version that the database said, asked for at ``asked`` on the loop's clock.

        Whether it is of the same history as those before. ``False``: an older version was said by a question that was
        asked after the newer one was known; whatever is under way must not be kept. Another catalogue id is a new
        history too, and one that names itself.
        """
        now = asyncio.get_running_loop().time()
        seen = self._seen.get(namespace)
        back = (
            seen is not None
            and seen[0] == catalog_id
            and number < seen[1] - self._max_lag
            and asked >= seen[2]
        )
        if back and seen is not None:
            _log.warning(
                "versions of a namespace went back: was a backup restored? Kept answers are dropped",
                seen=seen[1],
                now=number,
            )
            self.start_anew()
        elif seen is not None and seen[0] == catalog_id and number <= seen[1]:
            return True  # the newest stays, with the time when it was first known
        elif seen is not None and seen[0] != catalog_id:
            _log.warning("the catalogue has another id: kept answers are dropped")
            if self._went_back is not None:
                self._went_back(namespace)
        self._seen[namespace] = (catalog_id, number, now)
        self._seen.move_to_end(namespace)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return not back

    def start_anew(self) -> None:
        """A new history began: of all namespaces that were asked for, nothing is kept."""
        self.epoch += 1
        self.breaks += 1
        seen, self._seen = self._seen, OrderedDict()
        if self._went_back is not None:
            for namespace in seen:
                self._went_back(namespace)
