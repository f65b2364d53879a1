"""Detecting that the database went back: a restored backup, or a failover that lost changes.

Versions of a namespace only grow. A version smaller than an earlier one means that the database went back, and will
give the same numbers to other topics. So the plugin's versions have an *epoch*, which changes when that is noticed.
Whatever was kept under an older epoch (hashes, answers of the broker) is never found again, even if a running listing
stores it later.
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

#: Namespaces whose last version is remembered, the most recently asked ones, at 200 bytes each.
_REMEMBERED: Final = 100_000


class VersionHistory:
    """The versions that were read. ``went_back(namespace)`` is called for each namespace whose kept answers are void.

    ``max_lag`` is how many versions a replica may lag: a version smaller by no more is no step back.
    """

    def __init__(self, went_back: Callable[[NamespaceName], None] | None = None, *, max_lag: int = 0) -> None:
        self.epoch = 0
        self.breaks = 0
        self._went_back = went_back
        self._max_lag = max_lag
        self._seen: OrderedDict[NamespaceName, tuple[str, int, float]] = OrderedDict()

    def version(self, catalog_id: str, number: int, epoch: int) -> str:
        """The version for the broker: ``<catalogue id>:<number>``, with the epoch unless it is 0.

        ``epoch`` was read before the version was.
        """
        return f"{catalog_id}:{number}" if epoch == 0 else f"{catalog_id}~{epoch}:{number}"

    def record(self, namespace: NamespaceName, catalog_id: str, number: int, *, read_at: float) -> bool:
        """Record a version that was read from the database; ``read_at`` is the loop's clock before the reading.

        Returns ``False`` if the version went back, that is, a newer one was known before it was asked for. Answers
        under way must not be kept then. Another catalogue id begins a history of its own.
        """
        now = asyncio.get_running_loop().time()
        seen = self._seen.get(namespace)
        back = (
            seen is not None
            and seen[0] == catalog_id
            and number < seen[1] - self._max_lag
            and read_at >= seen[2]
        )
        if back and seen is not None:
            _log.warning(
                "versions of a namespace went back: was a backup restored? Kept answers are dropped",
                seen=seen[1],
                now=number,
            )
            self.start_anew()
        elif seen is not None and seen[0] == catalog_id and number <= seen[1]:
            return True  # the newest version stays, with the time of its first reading
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
        """Begin a new history: kept answers of all namespaces are void."""
        self.epoch += 1
        self.breaks += 1
        seen, self._seen = self._seen, OrderedDict()
        if self._went_back is not None:
            for namespace in seen:
                self._went_back(namespace)
