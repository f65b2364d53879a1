"""Questions to listers of a catalogue, and what they read for them."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import pytest

from broker_core.catalog import move_or_read_snapshot
from broker_core.catalog.catalog_lister import CatalogLister
from broker_core.catalog.move_or_read_snapshot import load_snapshot
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.import_file import import_topics
from broker_core.concurrency import cpu_threads
from broker_core.concurrency.cpu_threads import Steps, in_thread
from broker_core.listing.listing import Listing, Selection
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import TopicListingResult
from broker_core.settings import LimitsSettings
from broker_core.snapshots import Snapshot
from tests.support.eventually import eventually

NAMESPACE = NamespaceName("a", "b")
QUESTION = ListingRequest(NAMESPACE)
MB = 1024 * 1024


def permits_of(snapshots: int, timeout: float = 60.0) -> Permits:
    return Permits(LimitsSettings(snapshots=snapshots, permit_timeout=timeout))


class Reads:
    """Counts the snapshots that are read anew or moved, and may hold them up. Few topics are read in a thread too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loaded: list[Mode] = []
        self.moved = 0
        self.held: threading.Event | None = None
        self.fail: Exception | None = None
        load, move = load_snapshot, Snapshot.moving

        def loading(
            connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode, keys: Any
        ) -> Snapshot:
            if self.fail is not None:
                raise self.fail
            self.loaded.append(mode)
            snapshot = load(connection, namespace, mode, keys)
            if self.held is not None:
                assert self.held.wait(60)
            return snapshot

        def moving(snapshot: Snapshot, *arguments: Any) -> Steps[Snapshot]:
            self.moved += 1
            return move(snapshot, *arguments)

        monkeypatch.setattr(move_or_read_snapshot, "load_snapshot", loading)
        monkeypatch.setattr(move_or_read_snapshot, "_FEW", 0)
        monkeypatch.setattr(Snapshot, "moving", moving)


def topic(local: str, domain: str = "persistent") -> TopicName:
    return TopicName(domain, NAMESPACE, local)


def bring(catalog: SqliteCatalog, *lines: object, namespace: NamespaceName = NAMESPACE) -> None:
    import_topics(catalog, namespace, io.BytesIO("\n".join(json.dumps(line) for line in lines).encode()))


def put_another(catalog: SqliteCatalog, local: str) -> None:
    """Another catalogue in the place of this one, as an operator restores a copy."""
    other = catalog.path.with_name("other.sqlite")
    with SqliteCatalog(other) as made:
        made.create(topic(local))
        connection = made.connect()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    for leftover in catalog.path.parent.glob(f"{catalog.path.name}-*"):
        leftover.unlink()
    other.rename(catalog.path)


def names_of(result: TopicListingResult) -> list[str]:
    topics = result.topics
    assert isinstance(topics, Listing | Selection)
    return [str(name).rpartition("/")[2] for name in topics.names.to_pylist()]


async def settled(budget: PermitBudget, expected: Callable[[int], bool]) -> None:
    def at_last() -> bool:
        gc.collect()
        return expected(budget.acquired)

    await eventually(at_last)


async def threads_let_go() -> None:
    """Return when no thread has the result of an earlier call any more, as one has for a moment after it gave it."""
    together = threading.Barrier(cpu_threads._THREADS)
    await asyncio.gather(*(in_thread(number, together.wait) for number in range(cpu_threads._THREADS)))


def spaces(catalog: SqliteCatalog, count: int, topics: int = 10) -> list[ListingRequest]:
    questions = []
    for number in range(count):
        namespace = NamespaceName("many", f"n{number}")
        bring(catalog, *({"name": f"topic-{index}"} for index in range(topics)), namespace=namespace)
        questions.append(ListingRequest(namespace))
    return questions


def kept_bytes(lister: CatalogLister) -> int:
    (kept,) = lister._kept._kept.values()
    return kept.snapshot.nbytes
