"""The served generation: verified before, swapped, kept if the next one is refused, and freed with its last reader."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core import BoundedCache
from broker_core.names import Mode
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import Manifest
from broker_core_spark.serving import generation_refresher
from broker_core_spark.serving.changes.change_log_finder import ChangeLogFinder
from broker_core_spark.serving.generation_refresher import GenerationRefresher
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.pass_to_next_lister import UNDECLARED_STATIC
from broker_core_spark.serving.served_generation import CachedAnswer, ServedGeneration
from broker_core_spark.settings import SparkSettings
from broker_core_spark.store import open_store
from broker_core_spark.store.publishing import begin_build, use_generation
from tests.support.eventually import eventually
from tests.support.generation_builder import build_generation
from tests.support.narrowed import present

QUESTION = CanonicalQuestion.of("t/n", Mode.PERSISTENT, None)


def publish(folder: Path, *names: str) -> Manifest:
    store = open_store(str(folder))
    with begin_build(store) as build:
        manifest = build_generation(
            store, {"t/n": {"persistent": list(names)}}, [QUESTION], catalogue_id="one"
        )
        build.publish(manifest)
    return manifest


def damage(folder: Path, kind: str, manifest: Manifest) -> Path:
    """Damage a file of a generation."""
    segment = folder / manifest.segments[0].name
    data = bytearray(segment.read_bytes())
    segment.chmod(0o644)
    if kind == "cut":
        segment.write_bytes(data[: len(data) // 2])
    elif kind == "changed":
        data[len(data) // 2] ^= 1
        segment.write_bytes(data)
    elif kind == "missing":
        segment.unlink()
    else:
        other = publish(folder.with_name("elsewhere"), "quite", "another")
        segment.write_bytes((folder.with_name("elsewhere") / other.segments[0].name).read_bytes())
    return segment


def refresher_of(folder: Path, refresh: float, *, static: bool = True) -> GenerationRefresher:
    settings = SparkSettings(store=str(folder), refresh=refresh, static=static)
    answers = BoundedCache[bytes, CachedAnswer](1 << 20)

    def serve(generation: Generation, settings: SparkSettings) -> ServedGeneration:
        logs = ChangeLogFinder(tuple, timeout=1.0)
        return ServedGeneration(generation, logs, answers, settings)

    return GenerationRefresher(settings, serve, lambda _: None, lambda _: None)


@pytest.fixture
async def refresher(tmp_path: Path) -> AsyncIterator[GenerationRefresher]:
    """A refresher that a test calls."""
    made = refresher_of(tmp_path / "store", refresh=3600)
    yield made
    await made.close()


def topics(refresher: GenerationRefresher) -> int:
    answer = present(present(refresher.served).generation.lookup(QUESTION))
    return answer.count


def is_refused(refresher: GenerationRefresher) -> bool:
    return refresher.refused is not None


async def test_what_is_published_is_served(refresher: GenerationRefresher, tmp_path: Path) -> None:
    assert refresher.why_none == "the first generation is still being checked"
    await refresher.refresh()
    assert refresher.served is None
    assert not is_refused(refresher)  # before the first build nothing is wrong
    assert "nothing is published" in refresher.why_none
    first = await asyncio.to_thread(publish, tmp_path / "store", "a")
    await refresher.refresh()
    assert topics(refresher) == 1
    assert not is_refused(refresher)
    await asyncio.to_thread(publish, tmp_path / "store", "a", "b")
    await refresher.refresh()
    assert topics(refresher) == 2
    assert refresher.published is not None
    assert refresher.published.number == 2
    assert refresher.served is not None
    assert refresher.served._right_at == refresher.published.when, "its age counts from its publication"
    await asyncio.to_thread(use_generation, open_store(str(tmp_path / "store")), first.id[:12])
    await refresher.refresh()
    assert (topics(refresher), refresher.published.number) == (1, 3)


async def test_the_pointer_is_followed(tmp_path: Path) -> None:
    refresher = refresher_of(tmp_path / "store", refresh=0.01)
    await asyncio.to_thread(publish, tmp_path / "store", "a")
    await refresher.start(60.0)
    assert topics(refresher) == 1
    await asyncio.to_thread(publish, tmp_path / "store", "a", "b")
    await eventually(lambda: topics(refresher) == 2, timeout=60)
    await refresher.close()


@pytest.mark.parametrize("kind", ["cut", "changed", "missing", "foreign"])
async def test_a_generation_that_is_not_what_it_must_be_is_refused(
    refresher: GenerationRefresher, tmp_path: Path, kind: str
) -> None:
    folder, results = tmp_path / "store", list[str]()
    refresher._checked = results.append
    first = await asyncio.to_thread(publish, folder, "a")
    await refresher.refresh()
    second = await asyncio.to_thread(publish, folder, "a", "b")
    segment = await asyncio.to_thread(damage, folder, kind, second)
    await refresher.refresh()
    assert topics(refresher) == 1  # the old one serves on
    assert refresher.refused is not None
    assert refresher.refused.generation == second.id
    assert segment.name in refresher.refused.reason
    assert results == ["ok", "failed"]
    await refresher.refresh()  # not verified again each time
    assert results == ["ok", "failed"]
    await asyncio.to_thread(use_generation, open_store(str(folder)), first.id)
    await refresher.refresh()
    assert topics(refresher) == 1
    assert not is_refused(refresher)


async def test_pointers_that_have_gone_are_a_fault(refresher: GenerationRefresher, tmp_path: Path) -> None:
    problems = list[str]()
    refresher._report = problems.extend
    await asyncio.to_thread(publish, tmp_path / "store", "a")
    await refresher.refresh()
    assert problems == []
    await asyncio.to_thread((tmp_path / "store" / "pointers" / "000000000001.json").unlink)
    await refresher.refresh()
    assert topics(refresher) == 1
    assert is_refused(refresher)
    assert "nothing is published" in problems[0]


async def test_a_generation_that_answers_nothing_is_a_warning(tmp_path: Path) -> None:
    await asyncio.to_thread(publish, tmp_path / "store", "a")
    for static in (False, True):
        refresher = refresher_of(tmp_path / "store", refresh=3600, static=static)
        with capture_logs() as logs:
            await refresher.refresh()
        warnings = [line["reason"] for line in logs if line["log_level"] == "warning"]
        assert warnings == ([] if static else [UNDECLARED_STATIC])
        await refresher.close()


async def test_a_reader_that_fails_in_any_way_is_no_crash(
    refresher: GenerationRefresher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(publish, tmp_path / "store", "a")

    def fails(*_: object) -> Generation:
        raise MemoryError("too much")

    monkeypatch.setattr(generation_refresher, "open_generation", fails)
    await refresher.refresh()
    assert "MemoryError: too much" in present(refresher.refused).reason
    assert "too much" not in refresher.why_none  # which clients may see


async def test_a_store_that_is_none_is_refused_and_looked_at_again(
    refresher: GenerationRefresher, tmp_path: Path
) -> None:
    place = tmp_path / "store"
    await asyncio.to_thread(place.write_text, "a file, no folder")
    await refresher.refresh()
    assert refresher.served is None
    assert "store" in present(refresher.refused).reason
    await asyncio.to_thread(place.unlink)
    await asyncio.to_thread(publish, place, "a")
    await refresher.refresh()
    assert topics(refresher) == 1


async def test_a_map_goes_with_the_last_who_has_any_of_it(
    refresher: GenerationRefresher, tmp_path: Path
) -> None:
    await asyncio.to_thread(publish, tmp_path / "store", "a")
    await refresher.refresh()
    assert refresher.served is not None
    generation = weakref.ref(refresher.served.generation)
    answer = present(refresher.served.generation.lookup(QUESTION))
    fields = weakref.ref(answer.selection.listing)
    await asyncio.to_thread(publish, tmp_path / "store", "a", "b")
    await refresher.refresh()
    assert topics(refresher) == 2

    def is_gone(of: weakref.ref[Any]) -> bool:
        gc.collect()
        return of() is None

    # The thread that opened the next one lets go of it when it has given its result, which may be a moment later.
    await eventually(lambda: is_gone(generation))
    assert bytes(answer.selection.body()).endswith(b"persistent://t/n/a")  # a request under way
    del answer
    await eventually(lambda: is_gone(fields))
