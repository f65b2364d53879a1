"""Names over a column: a sequence like any other."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
import pytest

from broker_core.client.topic_names import TopicNames

NAMES = [f"persistent://public/default/orders-{number}" for number in range(10_000)]


def _names(names: list[str]) -> TopicNames:
    return TopicNames(pa.array(names, pa.large_string()))


def test_reads_as_the_list_of_its_names() -> None:
    names = _names(NAMES)
    assert len(names) == len(NAMES)
    assert list(names) == NAMES
    assert names[0] == NAMES[0]
    assert names[-1] == NAMES[-1]
    assert list(names[5:9]) == NAMES[5:9]
    assert list(names[::-3]) == NAMES[::-3]
    assert NAMES[7] in names
    assert "orders" not in names
    assert cast(str, 7) not in names
    assert names[:2] == _names(NAMES[:2])
    assert names[:2] != _names(NAMES[1:3])
    assert names[:2] != NAMES[:2]


def test_is_empty_by_itself() -> None:
    assert not TopicNames()
    assert list(TopicNames()) == []
    with pytest.raises(IndexError, match="no name 0 of 0"):
        TopicNames()[0]


def test_shows_a_few() -> None:
    assert repr(_names(["a", "b"])) == "TopicNames('a', 'b')"
    assert repr(_names(list("abcd"))) == "TopicNames('a', 'b', 'c', ... 4 in all)"
