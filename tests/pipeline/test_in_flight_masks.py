"""Names of several lookups in one call of a mask: each lookup gets its own verdict."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.pipeline.topic_questions import MasksInFlight
from tests.support.eventually import eventually


class Masks:
    """Hides names that end in ``x``, once it is let go."""

    def __init__(self) -> None:
        self.columns: list[list[str]] = []
        self.open = asyncio.Event()

    async def __call__(self, names: pa.LargeStringArray) -> Any:
        self.columns.append(names.to_pylist())
        await self.open.wait()
        if "broken" in self.columns[-1]:
            raise RuntimeError("no")
        return pc.invert(pc.ends_with(names, "x"))


def column(*names: str) -> pa.LargeStringArray:
    return pa.array(names, pa.large_string())


async def some(shared: MasksInFlight, key: str, names: pa.LargeStringArray, masks: Masks) -> bool:
    seen = await shared.visible(key, names, masks)
    assert seen is not None
    return bool(seen.any())


async def test_who_waits_shares_one_column() -> None:
    shared, masks = MasksInFlight(), Masks()
    first = asyncio.create_task(some(shared, "k", column("a"), masks))
    other = asyncio.create_task(some(shared, "other", column("o"), masks))
    await eventually(lambda: len(masks.columns) == 2)
    rest = [
        asyncio.create_task(some(shared, "k", names, masks))
        for names in (column("b", "cx"), column("dx", "ex"), column(), column("f"))
    ]
    gone = asyncio.create_task(some(shared, "k", column("g"), masks))
    await asyncio.sleep(0)
    gone.cancel()
    masks.open.set()
    assert await asyncio.gather(first, other, *rest) == [True, True, True, False, False, True]
    assert masks.columns == [["a"], ["o"], ["b", "cx", "dx", "ex", "f", "g"]]
    assert not await some(shared, "k", column("zx"), masks)  # nothing is left over
    assert not len(shared._runs._running)


async def test_a_failure_opens_nothing_and_ends_with_its_column() -> None:
    shared, masks = MasksInFlight(), Masks()
    masks.open.set()
    for result in await asyncio.gather(
        *(some(shared, "k", column("broken"), masks) for _ in range(3)), return_exceptions=True
    ):
        assert isinstance(result, RuntimeError)
    assert await some(shared, "k", column("a"), masks)


async def test_a_column_is_bounded() -> None:
    shared, masks = MasksInFlight(), Masks()
    masks.open.set()
    large = column(*(f"n{number}" for number in range(16_000)))
    found = await asyncio.gather(*(some(shared, "k", large, masks) for _ in range(4)))
    assert found == [True] * 4
    assert max(map(len, masks.columns)) <= 16_384
