"""Lists from plugins are freed in a thread, in slices, and never changed."""

from __future__ import annotations

import threading

import pytest

from broker_core import TopicListingResult
from broker_core.memory.free_off_loop import MANY
from tests.support.eventually import eventually


class _Text(str):  # noqa: SLOT000 - types made of it have attributes
    """A name that says in which thread it was freed."""

    freed_in: set[str]

    def __del__(self) -> None:
        self.freed_in.add(threading.current_thread().name)


def _names(count: int) -> tuple[list[str], set[str]]:
    freed_in: set[str] = set()
    kind = type("Text", (_Text,), {"freed_in": freed_in})
    return [kind(f"persistent://t/n/{number}") for number in range(count)], freed_in


@pytest.mark.parametrize("kind", [list, tuple])
async def test_many_names_are_freed_in_a_thread(kind: type) -> None:
    names, freed_in = _names(MANY + 17)
    result = TopicListingResult.success(kind(names))
    del names
    assert not freed_in
    del result
    await eventually(lambda: freed_in)
    assert freed_in == {"letting-go"}


async def test_what_somebody_still_has_stays_as_it_is() -> None:
    names, freed_in = _names(MANY)
    before = list(names)
    for _ in range(3):
        result = TopicListingResult.success(names)
        del result
    other, freed = _names(MANY)
    result = TopicListingResult.success(other)
    del other, result
    await eventually(lambda: freed)  # they are freed one after another
    assert names == before
    assert not freed_in


def test_few_names_are_freed_at_once() -> None:
    names, freed_in = _names(10)
    result = TopicListingResult.success(names)
    del names, result
    assert freed_in == {threading.current_thread().name}
