"""The newest pointer names the served generation. An unreadable one is an error, never skipped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from broker_core.names import Mode
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.store import Store
from broker_core_spark.store.build_and_gc_marks import read_marks
from broker_core_spark.store.published_pointers import (
    PublishedPointer,
    current_pointer,
    previous_generation,
    read_pointers,
    readable_pointers,
)
from broker_core_spark.store.publishing import begin_build, use_generation
from tests.support.generation_builder import build_generation
from tests.support.generations import memory


def publish(store: Store, number: int) -> PublishedPointer:
    catalogue = {"t/n": {"persistent": [f"x{i}" for i in range(number)]}}
    with begin_build(store) as build:
        requested = [CanonicalQuestion.of("t/n", Mode.ALL, None)]
        return build.publish(build_generation(store, catalogue, requested, catalogue_id="c"))


def test_the_last_that_was_published_is_served() -> None:
    store = memory()
    assert current_pointer(store) is None
    first, second = publish(store, 1), publish(store, 2)
    assert (first.number, second.number) == (1, 2)
    assert current_pointer(store) == second
    assert list(readable_pointers(store)) == [second, first]
    assert abs(datetime.now(UTC) - second.when) < timedelta(hours=1)
    assert read_marks(store) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"generation":1,"when":"x"}',
        b'{"generation":"../x","when":"2026-01-01T00:00:00+00:00"}',
        b"{",
        bytes(range(256)),
        b"\xff\xfe{\x00",
        b"x" * 5000,
    ],
)
def test_a_pointer_that_is_none_is_refused_by_its_name_and_can_be_replaced(data: bytes) -> None:
    store = memory()
    good = publish(store, 1)
    store.put_new("pointers/000000000002.json", data)
    store.put_new("pointers/other", b"not counted")
    with pytest.raises(InvalidGeneration, match="no pointer") as caught:
        current_pointer(store)
    assert caught.value.file == "pointers/000000000002.json"
    assert "codec" not in str(caught.value)
    assert list(readable_pointers(store)) == [good]
    assert [type(pointer) for pointer in read_pointers(store)] == [InvalidGeneration, PublishedPointer]
    assert previous_generation(store) == good.generation
    assert use_generation(store, good.generation).number == 3
    assert (now := current_pointer(store)) is not None
    assert now.generation == good.generation
