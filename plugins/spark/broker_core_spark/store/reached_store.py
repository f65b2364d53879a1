"""Checks whether a store answers: once before any work, with a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Final

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.store import Store

__all__ = ["REACH_SECONDS", "check_reached", "within"]

#: Time that a place has for its first answer. Clients of buckets try for minutes, a dead NFS server blocks for ever.
REACH_SECONDS: Final = 20.0


def check_reached(store: Store, seconds: float = REACH_SECONDS) -> None:
    """Raise :exc:`StoreFailed` unless the store lists its pointers in so many seconds, or says at once why not."""
    within(store.uri, lambda: next(store.list("pointers"), None), seconds)


def within(place: str, ask: Callable[[], object], seconds: float = REACH_SECONDS) -> None:
    """Call ``ask`` about a place on a thread of its own, with a time limit. Raises its error.

    Raises :exc:`StoreFailed` if the time is over. The thread then ends with the process.
    """
    answer: Future[object] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that asked
            answer.set_exception(error)

    threading.Thread(target=run, name="reached-store", daemon=True).start()
    if not wait([answer], seconds).done:
        raise StoreFailed(
            f"{place}: no answer for {seconds:g} seconds: is its address right, and is it there?"
        )
    answer.result()
