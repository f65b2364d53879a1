"""Looks at a table in the store: the newest counts, each number is made once, damage is an error."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from broker_core_spark.errors import DamagedFile
from broker_core_spark.store import open_store
from broker_core_spark.store.garbage_collection import collect_garbage
from broker_core_spark.store.table_changes_file import TableChanges, newest_changes, write_changes

LOOK = TableChanges(
    "ab" * 32,
    1,
    datetime(2026, 3, 1, tzinfo=UTC),
    {("a/b", "persistent", "x"): {"k": "é"}, ("a/b", "non-persistent", "x"): None},
)


def test_the_newest_look_counts_and_old_ones_go(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert newest_changes(store, LOOK.generation) is None
    for number in range(1, 6):
        look = replace(LOOK, number=number)
        assert write_changes(store, look)
        assert not write_changes(store, replace(look, names={}))
        assert newest_changes(store, LOOK.generation, number - 1) == look
        assert newest_changes(store, LOOK.generation, number) is None
    assert newest_changes(store, "cd" * 32) is None
    assert len(list(store.list("changes"))) == 3
    # Of no generation that stays.
    assert len(collect_garbage(store, grace=timedelta(0)).removed) == 3


@pytest.mark.parametrize("data", [b"", b"{}\n", b"\xff\n[]\n", b'["2026"]\n'])
def test_a_damaged_look_is_an_error(tmp_path: Path, data: bytes) -> None:
    store = open_store(str(tmp_path))
    write_changes(store, LOOK)
    path = tmp_path / "changes" / f"{LOOK.generation}-000000000001.jsonl"
    path.write_bytes(data or path.read_bytes()[:-3])
    with pytest.raises(DamagedFile, match="it is no file of changes"):
        newest_changes(store, LOOK.generation)


@pytest.mark.parametrize("state", ["gold", {"tier": 5}, []])
def test_a_state_that_is_none_is_an_error(tmp_path: Path, state: Any) -> None:
    store = open_store(str(tmp_path))
    write_changes(store, replace(LOOK, names={("a/b", "persistent", "x"): state}))
    with pytest.raises(DamagedFile, match="it is no file of changes"):
        newest_changes(store, LOOK.generation)
