"""The real Pulsar broker under measurement, with the same names and 4 GiB of heap.

Populating a million topics takes minutes, so the populated store is kept beside the cached jars.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.names import local_names, namespace_of
from tests.interop.maven import CACHE
from tests.interop.pulsar_peer import PulsarBroker

__all__ = ["running_broker"]

_HEAP = "4g"


@contextmanager
def running_broker(sizes: list[int]) -> Iterator[PulsarBroker]:
    """The broker with the namespaces of all ``sizes``, running."""
    folder = CACHE / "populated"
    broker = PulsarBroker(folder, heap=_HEAP, options=())
    record = folder / "sizes.json"
    done: list[int] = json.loads(record.read_text()) if record.exists() else []
    for size in sizes:
        if size not in done:
            broker.populate({namespace_of(size): local_names(size)}, heap="2g")
            done.append(size)
            _record(record, done)
    with broker:
        yield broker


def _record(record: Path, sizes: list[int]) -> None:
    fresh = record.with_suffix(".new")
    fresh.write_text(json.dumps(sizes))
    fresh.replace(record)
