"""Swaps to increments of a generation in a process of their own, as a broker makes them, beside a first load."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any, Final, cast

from broker_core.memory import keep_freed_memory
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.opened.verify_and_map import SampleChecks
from broker_core_spark.store import Store, open_store

__all__ = ["measure"]

Row = dict[str, Any]
#: Each load and each swap is made so many times: a broker draws at random which kept segments it verifies again.
_SWAPS: Final = 5


class _Counted:
    """A store that counts the bytes that are read of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.bytes = 0

    def fetch(self, path: str, size: int) -> Iterator[bytes]:
        self.bytes += size
        return self._store.fetch(path, size)

    def get(self, path: str, limit: int) -> bytes | None:
        data = self._store.get(path, limit)
        self.bytes += len(data or b"")
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def measure(store: Path, folder: Path, first: str, swaps: Mapping[str, tuple[str, float]]) -> list[Row]:
    """The rows of :mod:`.goals`: a first load of the generation ``first``, and the swap from each to the next.

    ``swaps`` has what changed, with the id of the generation and the goal of both shares. Private files are in
    ``folder``.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as broker:
        ids = [first, *(generation for generation, _ in swaps.values())]
        (bytes_of_load, load), *figures = broker.submit(_loaded_and_swapped, store, folder, ids).result()
    rows: list[Row] = [
        {"what": "a first load", "value": bytes_of_load / 1e6, "unit": "MB"},
        {"what": "a first load, of a processor", "value": load, "unit": "s"},
    ]
    for (what, (_, goal)), (read, worked) in zip(swaps.items(), figures, strict=True):
        shares = {"bytes": read / bytes_of_load, "processor time": worked / load}
        rows += [
            {"what": f"a swap to {what}: its {of}", "value": share, "unit": "", "at_most": goal}
            for of, share in shares.items()
        ]
    return rows


def _loaded_and_swapped(store: Path, folder: Path, ids: Sequence[str]) -> list[tuple[float, float]]:
    """The bytes that are read, and the seconds that processors work, for the first generation and for each swap."""
    keep_freed_memory()  # as a broker does
    counted = _Counted(open_store(str(store)))
    latest: Generation | None = None
    figures: list[tuple[float, float]] = []
    for generation in ids:
        before, opened = latest, []
        for seed in range(_SWAPS):
            latest = before  # lets the last one go: a broker holds two generations at a time
            latest, *figure = _opened(counted, folder, generation, before, seed)
            opened.append(figure)
        figures.append((mean(read for read, _ in opened), mean(worked for _, worked in opened)))
    return figures


def _opened(
    store: _Counted, folder: Path, generation: str, before: Generation | None, seed: int
) -> tuple[Generation, int, float]:
    """An open generation, the bytes that were read for it, and the seconds that processors worked."""
    read, began = store.bytes, time.process_time()
    made = Generation.open(
        cast(Store, store), generation, directory=str(folder), checks=SampleChecks(seed=seed), before=before
    )
    return made, store.bytes - read, time.process_time() - began
