"""Positions and pages: valid values, and their order."""

from __future__ import annotations

import random
from typing import Any

import pytest

from broker_core import Page, Position
from broker_core.errors import InvalidName

BASE = "persistent://t/n/"


def test_the_position_of_a_name_and_back() -> None:
    for name, base, partition in [
        ("x", "x", -1),
        ("x-partition-0", "x", 0),
        ("x-partition-2147483647", "x", 2147483647),
        ("x-partition-007", "x-partition-007", -1),
        ("x-partition-1-partition-2", "x-partition-1", 2),
        ("-partition-3", "-partition-3", -1),
    ]:
        position = Position.of(BASE + name)
        assert (position.base, position.partition) == (BASE + base, partition)
        assert position.name == BASE + name


def test_positions_have_the_order_of_utf16_units_then_of_numbers() -> None:
    ascending = [
        Position("non-persistent://t/n/z"),
        Position(BASE + "a"),
        Position(BASE + "a", 2),
        Position(BASE + "a", 10),
        Position(BASE + "a!"),  # the full name "a!" sorts before "a-partition-2"
        Position(BASE + "a\U0001f600"),  # a surrogate pair, D83D DE00
        Position(BASE + "a\uffee"),  # behind it in UTF-16, in front of it in UTF-8
        Position(BASE + "b"),
    ]
    shuffled = ascending.copy()
    random.Random(5).shuffle(shuffled)
    assert sorted(shuffled) == ascending
    assert Position(BASE + "a", 1) <= Position(BASE + "a", 1)
    assert Position(BASE + "a", 1) != Position(BASE + "a", 2)
    with pytest.raises(TypeError):
        _ = Position(BASE + "a") < "a"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("x",), InvalidName),
        (("persistent://t/n",), InvalidName),
        (("persistent://t/n/x/y",), InvalidName),
        (("persistent://t/n/\ud800",), InvalidName),
        ((None,), TypeError),
        ((b"persistent://t/n/x",), TypeError),
        ((BASE + "x", "1"), TypeError),
        ((BASE + "x", True), TypeError),
        ((BASE + "x", 1.0), TypeError),
        ((BASE + "x", -2), ValueError),
        ((BASE + "x", 2**31), ValueError),
    ],
)
def test_what_is_no_position(arguments: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        Position(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((BASE + "x", 1), TypeError, "start must be a broker_core.Position"),
        ((None, 0), ValueError, "at least 1, not 0"),
        ((None, True), TypeError, "whole number, not bool"),
        ((None, "10"), TypeError, "whole number, not str"),
    ],
)
def test_what_is_no_page(arguments: tuple[Any, ...], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Page(*arguments)


def test_pages_are_values() -> None:
    assert Page(Position(BASE + "x"), 3) == Page(Position(BASE + "x"), 3)
    assert Page().start is None
    assert len({Page(None, 1), Page(None, 1), Page(None, 2)}) == 2
