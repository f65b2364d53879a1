"""Chunks of a few names equal those that are made as columns, and refuse the same."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import InvalidListing
from broker_core.listing.changes.few_names import chunks_of_few
from broker_core.listing.chunks.build_chunks import build_chunks
from broker_core.names import Mode
from broker_core.names.name_columns import split_full_names
from tests.support.topics import NAMESPACE, full_names, persistent


@given(st.lists(full_names(), max_size=12), st.data())
def test_they_are_the_chunks_of_columns(names: list[str], data: st.DataObject) -> None:
    names = list(dict.fromkeys(names))
    values = [data.draw(st.sampled_from([None, "a", ""])) for _ in names]
    column = pa.array(names, pa.large_string())
    by_domain = {
        domain: {
            "team": pa.array(
                [value for name, value in zip(names, values, strict=True) if name.startswith(f"{domain}:")],
                pa.large_string(),
            )
        }
        for domain in ("persistent", "non-persistent")
    }
    expected = build_chunks(NAMESPACE, *split_full_names(column, NAMESPACE, Mode.ALL), by_domain)
    made = chunks_of_few(NAMESPACE, Mode.ALL, names, {"team": values})
    assert [chunk.domain for chunk in made] == [chunk.domain for chunk in expected]
    for chunk, other in zip(made, expected, strict=True):
        assert bytes(chunk.body(0, chunk.size)) == bytes(other.body(0, other.size))
        assert chunk.is_plain == other.is_plain
        assert chunk.crc == other.crc
        assert chunk.properties["team"].column().equals(other.properties["team"].column())


def test_a_name_twice_is_there_once() -> None:
    (chunk,) = chunks_of_few(NAMESPACE, Mode.ALL, persistent("b", "a", "b"), {})
    assert chunk.names(0, chunk.size).to_pylist() == persistent("a", "b")


@pytest.mark.parametrize(
    ("bad", "mode"),
    [
        ("persistent://t/other/a", Mode.ALL),
        ("non-persistent://t/n/a", Mode.PERSISTENT),
        ("a", Mode.ALL),
        ("persistent://t/n/", Mode.ALL),
        ("persistent://t/n/a/b", Mode.ALL),
        (f"persistent://t/n/{'x' * 40_000}", Mode.ALL),
    ],
    ids=range(6),
)
def test_what_does_not_belong_there(bad: str, mode: Mode) -> None:
    with pytest.raises(InvalidListing) as few:
        chunks_of_few(NAMESPACE, mode, [bad], {})
    with pytest.raises(InvalidListing) as many:
        split_full_names(pa.array([bad], pa.large_string()), NAMESPACE, mode)
    assert str(few.value) == str(many.value)
