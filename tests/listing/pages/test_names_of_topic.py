from __future__ import annotations

import pytest

from broker_core import Listing, Mode
from broker_core.listing.pages.names_of_topic import few_topic_names, partitions_of, topic_names
from broker_core.patterns import compile_pattern

BASE = "persistent://t/n/"
LOCALS = [
    *(
        "x",
        "x-partition-0",
        "x-partition-10",
        "x-partition-2",
        "x-partition-01",
        "x-partition-",
        "x-partition-3a",
    ),
    *(
        "x-partition-2-partition-7",
        "xa",
        "x-",
        "y-partition-4",
        "-partition-3",
        "x-partition-:",
        "x-partition-9\u00e9",
    ),
]
LISTING = Listing.from_names("t/n", Mode.ALL, [BASE + each for each in LOCALS] + ["non-persistent://t/n/x"])

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400


@pytest.mark.parametrize(
    ("topic", "names", "partitions"),
    [
        ("x", ["x", "x-partition-0", "x-partition-10", "x-partition-2"], 11),
        ("y", ["y-partition-4"], 5),
        ("x-partition-2", ["x-partition-2", "x-partition-2-partition-7"], 8),
        ("x-partition-10", ["x-partition-10"], 0),
        ("x-partition-01", ["x-partition-01"], 0),
        ("-partition-3", ["-partition-3"], 0),
        ("xa", ["xa"], 0),
        ("z", [], None),
        ("x-partition-4", [], None),
    ],
)
def test_the_names_of_a_topic(topic: str, names: list[str], partitions: int | None) -> None:
    found = topic_names(LISTING.all(), BASE + topic)
    assert found.to_pylist() == [BASE + each for each in names]
    assert partitions_of(found, BASE + topic) == partitions
    few = few_topic_names(LISTING.all(), BASE + topic)
    assert few is not None
    assert few.equals(found)


def test_of_a_selection_only_what_it_has() -> None:
    selection = LISTING.matching(compile_pattern("t/n/y"))
    assert topic_names(selection, f"{BASE}y").to_pylist() == [f"{BASE}y-partition-4"]
    assert topic_names(selection, f"{BASE}x").to_pylist() == []
    assert topic_names(LISTING.all(), "non-persistent://t/n/x").to_pylist() == ["non-persistent://t/n/x"]


def test_many_partitions() -> None:
    many = Listing.from_names(
        "t/n", Mode.PERSISTENT, [f"{BASE}m-partition-{number}" for number in range(0, 600, 3)]
    )
    assert few_topic_names(many.all(), f"{BASE}m") is None
    assert partitions_of(topic_names(many.all(), f"{BASE}m"), f"{BASE}m") == 598
