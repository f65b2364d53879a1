"""What builds leave for later ones: the last record of a generation and the newest learned questions count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker_core_spark.store.build_records import (
    build_record_paths,
    learned_paths,
    read_build_record,
    read_build_totals,
    read_learned,
    write_build_record,
    write_learned,
)
from tests.support.generations import memory
from tests.support.narrowed import present

ID = "a" * 64


def test_the_last_build_counts() -> None:
    store = memory()
    assert (read_build_record(store, ID), read_build_totals(store, ID)) == (None, None)
    for user in ("ann", "bob"):
        write_build_record(store, ID, {"generation": ID, "user": user}, user.encode())
    assert present(read_build_record(store, ID))["user"] == "bob"
    assert read_build_totals(store, ID) == b"bob"


def test_the_record_of_another_generation_is_none() -> None:
    store = memory()
    write_build_record(store, ID, {"generation": "b" * 64}, b"")
    assert read_build_record(store, ID) is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b" " * (2 << 20)])
def test_a_damaged_record_is_none(data: bytes) -> None:
    store = memory()
    store.put_new(build_record_paths(ID)[0], data)
    assert read_build_record(store, ID) is None


def test_the_newest_learned_questions_count() -> None:
    store = memory()
    assert (learned_paths(store), read_learned(store)) == ([], ("", b""))
    for number in (9, 10, 10**12):
        write_learned(store, number, str(number).encode())
    store.put_new("learned/notes.txt", b"foreign")
    assert [path[-10:] for path in learned_paths(store)] == ["0000.jsonl", "0010.jsonl", "0009.jsonl"]
    assert read_learned(store) == ("learned/1000000000000.jsonl", b"1000000000000")


def test_learned_questions_that_a_gc_removes_meanwhile_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
