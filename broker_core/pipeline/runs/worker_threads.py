"""The worker threads of the pipeline.

The threads compile patterns, search listings, build and gather columns. Each kind of work has threads of its own, and
the connections take turns in each (:mod:`.fair_threads`). Quick work is done on the event loop instead, while its turn
has time left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

from broker_core.access import Asker
from broker_core.concurrency import ON_LOOP, has_time, loop_turn
from broker_core.listing import Selection, matching_scan
from broker_core.metrics import Metrics
from broker_core.patterns import TopicsPattern, compile_pattern
from broker_core.pipeline.runs.fair_threads import Allowance, FairThreads, UncutWork

__all__ = ["Workers"]

T = TypeVar("T")

_SCANS: Final = 2
_LISTINGS: Final = 4
#: google-re2 holds the interpreter's lock, so that a second thread would bring nothing but more waiting for it.
_COMPILES: Final = 1
_REST: Final = 3.0
#: Compiling a dear pattern takes 2 to 15 ms: a hundred at once, then ten a second and more.
_COMPILING: Final = Allowance(rate=0.1, most=0.3)


class Workers:
    """The threads of one pipeline; for its event loop. ``kinds`` are the threads of each kind of work, by its name."""

    def __init__(self) -> None:
        self._scan = FairThreads(_SCANS, "pattern-scan")
        self._listing = FairThreads(_LISTINGS, "listing")
        self._compile = FairThreads(_COMPILES, "pattern-compile", _COMPILING, rest=_REST)
        self.kinds: Mapping[str, FairThreads] = {
            "compile": self._compile,
            "scan": self._scan,
            "listing": self._listing,
        }

    def show(self, metrics: Metrics) -> None:
        """Declare the metrics of the threads."""
        kinds = self.kinds
        metrics.gauge(
            "work_queue_size",
            "Work of listings that waits for a thread.",
            lambda: {kind: threads.waiting for kind, threads in kinds.items()},
            "kind",
        )
        metrics.read_counter(
            "work_cpu_seconds",
            "Seconds of the processor that threads took for work of listings.",
            lambda: {kind: threads.seconds for kind, threads in kinds.items()},
            "kind",
        )
        metrics.read_histogram(
            "work_wait_seconds",
            "Seconds that work of listings waited for its first slice.",
            lambda: {kind: threads.waits for kind, threads in kinds.items()},
            "kind",
        )

    def close(self) -> None:
        """End the threads once their running work is done."""
        for threads in self.kinds.values():
            threads.close()

    async def compile(self, asker: Asker, raw: str, max_length: int) -> TopicsPattern:
        """The compiled pattern. Raises :exc:`~broker_core.errors.InvalidPattern`."""
        work = partial(compile_pattern, raw, max_length=max_length)
        return await self._compile.run(asker.connection, UncutWork(work, same=(raw, max_length)))

    def try_matching(self, selection: Selection, pattern: TopicsPattern) -> Selection | None:
        """The matching topics, if they are known, or quick to find in a turn that has time; ``None`` otherwise."""
        known = selection.known_matching(pattern)
        if known is None and has_time() and selection.matching_is_quick(pattern):
            known = selection.matching(pattern)
        return known

    async def matching(self, asker: Asker, selection: Selection, pattern: TopicsPattern) -> Selection:
        """The topics of ``selection`` that match ``pattern``, which RE2 supports."""
        known = self.try_matching(selection, pattern)
        if known is not None:
            return known
        return await self._scan.run(asker.connection, matching_scan(selection, pattern))

    async def call(self, asker: Asker, work: Callable[[], T], microseconds: float = math.inf) -> T:
        """The result of ``work()``, called in a thread, or on the loop in a turn that has time if it takes about so
        many ``microseconds`` and that is short: see :mod:`broker_core.concurrency.loop_or_thread`.
        """
        if microseconds <= ON_LOOP:
            await loop_turn().time()
            return work()
        return await self._listing.run(asker.connection, UncutWork(work))
