from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.kafka.topic_names import INTERNAL, internal_names, is_legal, legal_names


def column(names: list[str]) -> pa.LargeBinaryArray:
    return pa.array([name.encode() for name in names], pa.large_binary())


def test_names_that_kafka_takes() -> None:
    for name in ("a", "A.b_c-9", "...", "x" * 249, "__x"):
        assert is_legal(name)
    for name in ("", ".", "..", "x" * 250, "a b", "a/b", "é", "a\n"):
        assert not is_legal(name)


@given(st.lists(st.text(st.sampled_from("ab.é/ "), max_size=4) | st.just("x" * 250)), st.integers(0, 3))
def test_a_column_is_judged_as_each_name_is(names: list[str], skipped: int) -> None:
    legal = [is_legal(name) for name in names[skipped:]]
    found = legal_names(column(names)[skipped:])
    assert (None if found is None else found.tolist()) == (None if all(legal) else legal)


def test_internal_topics_are_three_names() -> None:
    names = ["__consumer_offsets", "__x", "a", *sorted(INTERNAL)]
    assert internal_names(column(names)).tolist() == [True, False, False, True, True, True]
