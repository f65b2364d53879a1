"""Sorted runs are read as they were written, in order, and tell the driver what is in them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from broker_core_spark.batch.staging import sorted_runs
from broker_core_spark.batch.staging.order_keys import KeyRanges, name_of_key, order_key
from broker_core_spark.batch.staging.sorted_runs import (
    SortedRunWriter,
    joined_names,
    read_blocks,
)
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.errors import DamagedFile
from broker_core_spark.format.segment_boundaries import begins_segment
from broker_core_spark.store import Store, open_store


def texts(*values: str | None) -> pa.LargeStringArray:
    return pa.array(values, pa.large_string())


def writer(store: Store, *, properties: int = 0, key_ranges: KeyRanges | None = None) -> SortedRunWriter:
    keys = tuple(f"k{number}" for number in range(properties))
    return SortedRunWriter(StagingArea(store.uri, "temporary/test", keys, 4096, key_ranges=key_ranges))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path))


def test_a_run_is_sorted_and_says_what_is_in_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_runs, "BLOCK_ROWS", 64)
    names = texts(
        *(f"orders-{number * 7919 % 1000}" for number in range(1000)), "__change_events", "😀", "\ue000"
    )
    values = texts(*(str(number) if number % 3 else None for number in range(len(names))))
    made = writer(store, properties=1)
    made.add("a/b", "persistent", names, [values])
    made.add("a/a", "persistent", texts("x"), [texts(None)])
    (run,) = made.finish()
    assert run.names == {("a/b", "persistent"): 1003, ("a/a", "persistent"): 1}
    assert run.system == 1
    assert sum(block.rows for block in run.blocks) == 1003
    rows = read_blocks(store, run.path, run.blocks, 1)
    keys = rows["key"].to_pylist()
    assert keys == sorted(keys)
    assert [block.first for block in run.blocks] == keys[::64]
    by_name = dict(zip(names.to_pylist(), values.to_pylist(), strict=True))
    for key, value in zip(keys, rows["p0"].to_pylist(), strict=True):
        namespace, _, local = name_of_key(key)
        assert value == (by_name[local] if namespace == "a/b" else None)
    shown = names.filter(pa.array([name != "__change_events" for name in names.to_pylist()]))
    begins = shown.filter(pa.array(begins_segment("a/b", "persistent", shown, target=4096)))
    assert set(order_key("a/b", "persistent", begins).to_pylist()) <= set(run.segment_starts)
    part = read_blocks(store, run.path, run.blocks[3:5], 1)
    assert part["key"].to_pylist() == keys[3 * 64 : 5 * 64]


def test_full_runs_are_written_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_runs, "RUN_ROWS", 100)
    made = writer(store)
    made.add("a/b", "persistent", texts(*map(str, range(250))))
    runs = made.finish()
    assert [sum(block.rows for block in run.blocks) for run in runs] == [100, 100, 50]
    assert sum(sum(run.names.values()) for run in runs) == 250
    assert len({run.path for run in runs}) == 3


def test_only_names_within_the_window_are_staged(store: Store) -> None:
    (low, middle, high) = (key.as_py() for key in order_key("a/b", "persistent", texts("b", "d", "f")))
    made = writer(store, key_ranges=((low, middle), (high, b"")))
    names = texts("a", "b", "c", "d", "e", "f", "g")
    made.add("a/b", "persistent", names)
    (run,) = made.finish()
    found = [name_of_key(key)[2] for key in read_blocks(store, run.path, run.blocks, 0)["key"].to_pylist()]
    assert found == ["b", "c", "f", "g"]
    assert run.names == {("a/b", "persistent"): 7}


def test_nothing(store: Store) -> None:
    made = writer(store)
    made.add("a/b", "persistent", texts())
    assert made.finish() == []
    assert len(joined_names([], 2)) == 0
    made.add("a/b", "persistent", texts("__change_events"))
    (run,) = made.finish()
    assert (run.path, run.blocks, run.system) == ("", (), 1)


def test_a_changed_run_is_an_error(store: Store) -> None:
    made = writer(store)
    made.add("a/b", "persistent", texts(*(f"orders-{number}" for number in range(100))))
    (run,) = made.finish()
    data = bytearray(store.get_range(run.path, 0, run.blocks[-1].stop))
    data[len(data) // 2] ^= 1
    store.replace(run.path, bytes(data))
    with pytest.raises(DamagedFile, match="not those that the build wrote"):
        read_blocks(store, run.path, run.blocks, 0)
