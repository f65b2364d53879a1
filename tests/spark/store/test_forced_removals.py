"""A build whose mark was removed by force says who did it, when and why."""

from __future__ import annotations

import pytest

from broker_core_spark.store.forced_removals import note_removal, removal_note
from broker_core_spark.store.mark_owner import user_name
from tests.support.generations import memory


def test_the_note_is_of_one_run() -> None:
    store = memory()
    note_removal(store, "a1", "the node\nhas gone")
    assert removal_note(store, "a1").startswith(f" ({user_name()} removed it by gc --force at 20")
    assert removal_note(store, "a1").endswith(": the node\nhas gone)")
    assert removal_note(store, "b2") == ""


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"x" * 20_000])
def test_a_note_that_is_none_says_nothing(data: bytes) -> None:
    store = memory()
    store.put_new("marks/forced-a1", data)
    assert removal_note(store, "a1") == ""
