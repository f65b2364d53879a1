"""The learned questions of a store: the newest file counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker_core_spark.store.learned_file import learned_paths, read_learned, write_learned
from tests.support.generations import memory


def test_the_newest_file_counts() -> None:
    store = memory()
    assert (learned_paths(store), read_learned(store)) == ([], ("", b""))
    for number in (9, 10, 10**12):
        write_learned(store, number, str(number).encode())
    store.put_new("learned/notes.txt", b"foreign")
    assert [path[-10:] for path in learned_paths(store)] == ["0000.jsonl", "0010.jsonl", "0009.jsonl"]
    assert read_learned(store) == ("learned/1000000000000.jsonl", b"1000000000000")


def test_a_file_that_a_gc_removes_meanwhile_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory()
    write_learned(store, 1, b"one")
    listed = list(store.list("learned"))
    write_learned(store, 2, b"two")
    listed += [file for file in store.list("learned") if file not in listed]
    store.delete("learned/000000000002.jsonl")

    def before(_: str) -> Iterator[object]:
        return iter(listed)

    monkeypatch.setattr(store, "list", before)
    assert read_learned(store) == ("learned/000000000001.jsonl", b"one")
