"""Records of builds in a store: the last build of a generation counts, and damage is no error."""

from __future__ import annotations

import pytest

from broker_core_spark.store.build_records import (
    build_record_paths,
    read_build_record,
    read_build_totals,
    write_build_record,
)
from tests.support.generations import memory

ID = "a" * 64


def test_the_last_build_counts() -> None:
    store = memory()
    assert (read_build_record(store, ID), read_build_totals(store, ID)) == (None, None)
    for user in ("ann", "bob"):
        write_build_record(store, ID, {"user": user}, user.encode())
    assert (read_build_record(store, ID), read_build_totals(store, ID)) == ({"user": "bob"}, b"bob")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b" " * (2 << 20)])
def test_a_damaged_record_is_none(data: bytes) -> None:
    store = memory()
    store.put_new(build_record_paths(ID)[0], data)
    assert read_build_record(store, ID) is None
