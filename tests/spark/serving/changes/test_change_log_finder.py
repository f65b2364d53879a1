"""Finding the change log of a generation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from broker_core.errors import ListingFailed
from broker_core_spark.serving.changes.change_log_finder import ChangeLogFinder
from broker_core_spark.serving.pass_to_next_lister import PassToNextLister


@dataclass
class Log:
    id: str | None
    name: str = "catalog"
    requested: int = 0

    async def catalog_id(self) -> str:
        self.requested += 1
        if self.id is None:
            raise ListingFailed("the database is gone")
        return self.id


@dataclass
class Of:
    """The parts of a manifest that matter here."""

    catalogue_id: str = "one"
    static: bool = False


def found(*logs: Any, timeout: float = 1.0) -> ChangeLogFinder:
    return ChangeLogFinder(lambda: logs, timeout=timeout)


async def test_the_log_with_the_id_is_found_and_asked_no_more() -> None:
    first, second = Log("two"), Log("one", "postgres")
    log = found(first, second)
    for _ in range(3):
        chosen: Any = await log.find(Of(), static=False)  # type: ignore[arg-type]
        assert chosen is second
    assert (first.requested, second.requested) == (1, 1)


@pytest.mark.parametrize(
    ("logs", "manifest", "static", "reason"),
    [
        ([], Of(), False, "no_change_log"),
        ([Log("two")], Of(), False, "other_catalogue"),
        ([Log("two")], Of(), True, "other_catalogue"),
        ([Log("two"), Log(None)], Of(), False, "unreachable"),
        ([Log("one")], Of(static=True), False, "not_declared_static"),
        ([], Of(static=True), True, None),
        ([Log("one")], Of(static=True), True, None),
        ([], Of(), True, None),
    ],
    ids=[
        "none",
        "other",
        "other-static",
        "unreachable",
        "undeclared",
        "static",
        "static-beside",
        "no-log-static",
    ],
)
async def test_without_its_log_a_generation_is_served_only_as_declared(
    logs: list[Log], manifest: Of, static: bool, reason: str | None
) -> None:
    log = found(*logs)
    if reason is None:
        assert await log.find(manifest, static=static) is None  # type: ignore[arg-type]
        return
    with pytest.raises(PassToNextLister) as refused:
        await log.find(manifest, static=static)  # type: ignore[arg-type]
    assert refused.value.reason == reason


async def test_a_log_that_was_not_it_is_not_asked_for_each_question() -> None:
    log = Log("two")
    looking = found(log)
    for _ in range(20):
        with pytest.raises(PassToNextLister):
            await looking.find(Of(), static=False)  # type: ignore[arg-type]
    assert log.requested == 1


async def test_a_log_that_hangs_is_unreachable() -> None:
    class Hangs(Log):
        async def catalog_id(self) -> str:
            await asyncio.Event().wait()
            return "one"

    with pytest.raises(PassToNextLister, match="no answer") as refused:
        await found(Hangs("one"), timeout=0.01).find(Of(), static=False)  # type: ignore[arg-type]
    assert refused.value.reason == "unreachable"


async def test_a_log_that_another_question_found_stays_found() -> None:
    """The log answers the first of two questions, and not the second, whose look ends later."""
    first, second = asyncio.Event(), asyncio.Event()
    turns = iter((first, second))

    class Once(Log):
        async def catalog_id(self) -> str:
            await next(turns).wait()
            if second.is_set():
                raise ListingFailed("the database is gone")
            return "one"

    log = Once("one")
    looking = found(log, timeout=60.0)
    requested = [asyncio.create_task(looking.find(Of(), static=False)) for _ in range(2)]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    first.set()
    chosen: Any = await requested[0]
    second.set()
    assert await requested[1] is chosen is log
    assert await looking.find(Of(), static=False) is log
