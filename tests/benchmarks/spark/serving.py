"""The cost of serving a generation: ``python -m tests.benchmarks.spark.serving``.

1,000,000 scattered matches of 2,000,000 names, 100,000 questions, 100 swaps under load; with ``--small`` a quick look
that everything works.

Latencies are those of the plugin's own hook, called in this process: the version of the catalogue is looked up in its
file each time, as in a broker. Memory is that of a fresh process, before and after it opened a generation and asked
every question once; pages of mapped files count if they are resident.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from broker_core import BoundedCache, Selection
from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.client import LookupSession
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.patterns import compile_pattern
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.connection.large_answers import PIECE
from broker_core.testing import serve
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.serving.changes.change_log_finder import ChangeLogFinder
from broker_core_spark.serving.generation_refresher import open_generation
from broker_core_spark.serving.served_generation import ServedGeneration
from broker_core_spark.settings import SparkSettings
from broker_core_spark.store import open_store
from broker_core_spark.store.publishing import begin_build, use_generation
from tests.benchmarks.processes import resident
from tests.benchmarks.spark.goals import Row, lines
from tests.support.generation_builder import build_generation

__all__ = ["main", "measure"]

NAMESPACE = "public/default"


def _timed(function: Callable[[], object], times: int) -> list[float]:
    """Seconds of each call."""
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begun)
    return seconds


def _names(count: int) -> pa.LargeStringArray:
    return pa.array(
        [f"topic-{number % 97:02}-of-a-usual-length-{number:08}" for number in range(count)],
        pa.large_string(),
    )


def _publish(
    folder: Path, names: pa.LargeStringArray, patterns: Sequence[str | None], catalogue: SqliteCatalog
) -> str:
    store = open_store(str(folder))
    version = catalogue.version(NamespaceName.parse(NAMESPACE)).number
    questions = [CanonicalQuestion.of(NAMESPACE, Mode.PERSISTENT, pattern) for pattern in patterns]
    with begin_build(store) as build:
        manifest = build_generation(
            store,
            {NAMESPACE: {"persistent": names}},
            questions,
            catalogue_id=catalogue.catalog_id,
            versions={NAMESPACE: version},
        )
        build.publish(manifest)
    return manifest.id


def _request(pattern: str | None, topics_hash: str | None = None) -> ListingRequest:
    compiled = None if pattern is None else compile_pattern(pattern)
    return ListingRequest(
        NamespaceName.parse(NAMESPACE), Mode.PERSISTENT, compiled, topics_hash, MappingProxyType({})
    )


async def _latencies(folder: Path, matches: int) -> list[Row]:
    """The hook's own time, in microseconds, and that of gathering many scattered names."""
    ranges = [f"{NAMESPACE}/topic-{number:02}-.*" for number in range(97)]
    scattered = f"{NAMESPACE}/.*[02468]"
    catalogue = SqliteCatalog(folder / "topics.sqlite")
    catalogue.create(TopicName.parse(f"persistent://{NAMESPACE}/only-a-version"))
    generation = await asyncio.to_thread(
        _publish, folder / "large", _names(2 * matches), [*ranges, scattered], catalogue
    )
    from broker_core_spark.serving.opened.generation import Generation

    begun = time.perf_counter()
    opened = await asyncio.to_thread(Generation.open, open_store(str(folder / "large")), generation)
    opening = time.perf_counter() - begun
    reader = CatalogLogReader(catalogue)
    logs = ChangeLogFinder(lambda: (reader,), timeout=1.0)
    settings = SparkSettings(store=str(folder / "large"))
    served = ServedGeneration(opened, logs, BoundedCache(1 << 28), settings)
    hashes = {pattern: (await served.answer(_request(pattern))).topics_hash for pattern in ranges}

    async def median(requests: Sequence[ListingRequest]) -> float:
        seconds = []
        for request in requests:
            started = time.perf_counter()
            await served.answer(request)
            seconds.append(time.perf_counter() - started)
        return statistics.median(seconds)

    random = Random(1)
    requested = [random.choice(ranges) for _ in range(5000)]
    changed = await median([_request(pattern) for pattern in requested])
    unchanged = await median([_request(pattern, hashes[pattern]) for pattern in requested])
    looked_up = await median([_request(scattered)] * 500)
    answer = await served.answer(_request(scattered))
    assert len(answer.selection) == matches
    sent = _timed(lambda: _read_as_sent(answer.selection), 15)
    gathered = _timed(answer.selection.body, 15)
    reader.close()
    catalogue.close()
    return [
        {"what": "opened and checked wholly", "value": opening, "unit": "s", "topics": 2 * matches},
        {"what": "range listing in the plugin, p50", "value": changed * 1e6, "unit": "us", "at_most": 50},
        {"what": "the same, unchanged, p50", "value": unchanged * 1e6, "unit": "us", "at_most": 50},
        {"what": "scattered listing in the plugin, p50", "value": looked_up * 1e6, "unit": "us"},
        {
            "what": f"{matches:,} scattered matches, looked up and read as sent, p50",
            "value": (looked_up + statistics.median(sent)) * 1e3,
            "unit": "ms",
            "at_most": 20,
            "fastest": (looked_up + min(sent)) * 1e3,
        },
        {
            "what": "the same, gathered into one buffer, p50",
            "value": (looked_up + statistics.median(gathered)) * 1e3,
            "unit": "ms",
            "fastest": (looked_up + min(gathered)) * 1e3,
        },
    ]


def _read_as_sent(selection: Selection) -> None:
    """Make all bytes of an answer in the pieces that a server writes to a connection that takes them at once."""
    reader = selection.reader()
    while reader.left:
        reader.read(PIECE)


def _grown(folder: str, generation: str, questions: int, results: Any) -> None:
    """In a process of its own: what opening a generation and asking all of its questions adds."""
    settings, store = SparkSettings(store=folder), open_store(folder)
    warm = open_generation(settings, store, generation)  # what is imported and allocated the first time
    warm.lookup(CanonicalQuestion.of(NAMESPACE, Mode.PERSISTENT, _small_pattern(0)))
    del warm
    gc.collect()
    before = resident(os.getpid())
    opened = open_generation(settings, store, generation)
    for number in range(questions):
        if opened.lookup(CanonicalQuestion.of(NAMESPACE, Mode.PERSISTENT, _small_pattern(number))) is None:
            raise RuntimeError("a question of the generation was not found")
    gc.collect()
    results.put(resident(os.getpid()) - before)


def _small_pattern(number: int) -> str:
    return f"{NAMESPACE}/topic-{number:06}-.*"


def _memory(folder: Path, questions: int) -> list[Row]:
    """Resident bytes for each registered question: the difference between many questions and few."""
    catalogue = SqliteCatalog(folder / "few.sqlite")
    names = _names(1000)
    grown = []
    context = multiprocessing.get_context("spawn")
    for count in (questions // 10, questions):
        patterns = [_small_pattern(number) for number in range(count)]
        generation = _publish(folder / f"questions-{count}", names, patterns, catalogue)
        results: Any = context.Queue()
        process = context.Process(
            target=_grown, args=(str(folder / f"questions-{count}"), generation, count, results)
        )
        process.start()
        grown.append(results.get(timeout=600))
        process.join()
    catalogue.close()
    each = (grown[1] - grown[0]) / (questions - questions // 10)
    return [
        {"what": "resident growth for a registered question", "value": each, "unit": "bytes", "at_most": 200}
    ]


async def _swaps(folder: Path, swaps: int) -> list[Row]:
    """Generations swapped while clients ask: how many answers there were, and how many were not right."""
    # The batch, which is half of all imports: the processes of `_memory` import this module and need none of it.
    from tests.support.spark_model import CatalogueModel, publish

    plugin, store = SparkPlugin(), folder / "swapped"
    tables: dict[str, dict[str, Any]] = {
        "catalog": {"path": folder / "swapped.sqlite", "property_keys": ["team"]},
        "plugins": {"spark": {"store": str(store), "refresh": "1h"}},
    }
    patterns = [f"{NAMESPACE}/t-{number}.*" for number in range(1, 10)]
    requested = [(NAMESPACE, Mode.PERSISTENT, pattern, dict[str, str]()) for pattern in patterns]
    async with serve({"spark": plugin}, settings=tables) as server:
        model = CatalogueModel(server)
        await model.fill([f"persistent://{NAMESPACE}/t-{number}" for number in range(300)], Random(1))
        parts = [requested, requested[1:], requested[2:]]
        ids = [(await publish(str(store), model, part)).generation for part in parts]
        await plugin.lister.refresher.refresh()
        expected = {pattern: model.answer(one) for pattern, one in zip(patterns, requested, strict=True)}
        done = asyncio.Event()
        wrong = answers = 0

        async def client(seed: int) -> None:
            nonlocal wrong, answers
            choose = Random(seed)
            async with LookupSession(server.url) as connection:
                while not done.is_set():
                    pattern = choose.choice(patterns)
                    answer = await connection.get_topics(NAMESPACE, pattern=pattern)
                    wrong += answer.topics != expected[pattern]
                    answers += 1

        clients = [asyncio.create_task(client(seed)) for seed in range(4)]
        opened = await asyncio.to_thread(open_store, str(store))
        begun = time.perf_counter()
        for number in range(swaps):
            await asyncio.to_thread(use_generation, opened, ids[number % 3])
            await plugin.lister.refresher.refresh()
        seconds = time.perf_counter() - begun
        done.set()
        failures = [one for one in await asyncio.gather(*clients, return_exceptions=True) if one is not None]
        swapped = plugin.lister.counts.checks["ok"]
    errors = wrong + len(failures)
    return [
        {
            "what": "generations swapped under load",
            "value": float(swapped),
            "unit": "swaps",
            "at_least": swaps,
            "answers": answers,
        },
        {"what": "seconds for a swap, checked wholly", "value": seconds / swaps, "unit": "s"},
        {"what": "wrong answers and errors meanwhile", "value": float(errors), "unit": "", "at_most": 0},
    ]


def measure(*, small: bool = False) -> list[Row]:
    """The rows: ``what``, ``value``, ``unit``, and ``at_most`` or ``at_least`` if there is a goal."""
    matches, questions, swaps = (5_000, 1_000, 6) if small else (1_000_000, 100_000, 100)
    with tempfile.TemporaryDirectory(prefix="broker-core-spark-bench-") as name:
        folder = Path(name)
        rows = asyncio.run(_latencies(folder, matches))
        rows += _memory(folder, questions)
        rows += asyncio.run(_swaps(folder, swaps))
    return rows


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    """Measure, print, and give the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="sizes that take seconds")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    given = parser.parse_args(arguments)
    rows = measure(small=given.small)
    print(json.dumps(rows, indent=2) if given.json else "\n".join(lines(rows)))
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
