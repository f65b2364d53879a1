"""Sealed fields: only the holder of the descriptor can read and write them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from broker_core import Access, Asker, Details, NamespaceName, Page, Position, Refused, TopicName
from broker_core.immutable.sealed import Sealed, seal


class Box(Sealed):
    """Holds one thing."""

    __slots__ = ("__weakref__", "_held")


held = seal(Box, "_held")


def box(value: Any) -> Box:
    made = object.__new__(Box)
    held.__set__(made, value)
    return made


def test_only_the_descriptor_reads_and_writes() -> None:
    made = box(7)
    assert held.__get__(made) == 7
    for write in (setattr, object.__setattr__):
        with pytest.raises(AttributeError):
            write(made, "_held", 8)
    with pytest.raises(AttributeError):
        _ = made._held  # type: ignore[attr-defined]
    assert not hasattr(made, "__dict__")
    held.__set__(made, 9)
    assert held.__get__(made) == 9


def test_it_is_not_called_and_nothing_is_a_kind_of_it() -> None:
    with pytest.raises(TypeError, match="a Box is made by the functions"):
        Box(7)
    with pytest.raises(TypeError, match="Box is final"):
        type("Other", (Box,), {})


def test_one_that_nobody_filled_holds_nothing() -> None:
    with pytest.raises(AttributeError):
        held.__get__(object.__new__(Box))


def test_a_copy_is_the_same_and_none_leaves_the_process() -> None:
    made = box(7)
    assert copy.copy(made) is made
    assert copy.deepcopy([made])[0] is made
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(made)


ASKER = Asker(role="guest", remote_address="192.0.2.1:1")
NAMESPACE = NamespaceName("t", "n")
TOPIC = TopicName.parse("persistent://t/n/x")


@pytest.mark.parametrize(
    "value",
    [
        ASKER,
        Access("list", NAMESPACE, TOPIC, ASKER),
        Refused("no"),
        Position("persistent://t/n/x", 1),
        Page(Position("persistent://t/n/x"), 2),
        NAMESPACE,
        TOPIC,
        Details.of(["persistent://t/n/x"], partitions=[1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_of_the_interface_is_read_copied_and_never_written(value: Any) -> None:
    """What a gate is asked, and what a cache is keyed by, is what the transport said, whatever has seen it."""
    names = [name for name in type(value).__slots__ if name != "__weakref__"]
    before = [getattr(value, name) for name in names]
    for name in names:
        for write in (setattr, object.__setattr__):
            with pytest.raises((AttributeError, TypeError)):
                write(value, name, "other")
    for again in (("x",), ("a", "b"), ("a", NAMESPACE, "b"), (None, None, None, None)):
        try:
            value.__init__(*again)
        except TypeError:
            pass
    if hasattr(value, "__setstate__"):
        with pytest.raises((AttributeError, TypeError)):
            value.__setstate__(["other"] * len(names))
    assert [getattr(value, name) for name in names] == before
    if type(value) is not Details:
        assert copy.copy(value) == value
    if type(value) not in (Details, Asker):
        assert dataclasses.replace(value) == pickle.loads(pickle.dumps(value)) == value


def test_a_value_keeps_the_characters_and_not_the_kind_of_string() -> None:
    class Own(str):
        __slots__ = ()

    assert type(Position(Own("persistent://t/n/x")).base) is str
    assert type(Refused(Own("no")).message) is str
