"""Masks in slices give the same answer as in one piece, in the memory of a slice."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core.pipeline import masks_of_plugins
from broker_core.pipeline.answer import Trace
from broker_core.plugins import PluginFailed
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import NAMES, made, names, request
from tests.support.plugins import PluginOf


class Hiding:
    """Hides names with a 7, and remembers the columns that it was shown."""

    def __init__(self, hidden: str = "7") -> None:
        self.hidden = hidden
        self.seen: list[Any] = []

        async def broker_core_visible(topics: Any) -> Any:
            self.seen.append(topics)
            return pc.invert(pc.match_substring(topics, self.hidden))

        self.plugin = PluginOf(visible=broker_core_visible)


@pytest.mark.parametrize("size", [1, 7, 1000, len(NAMES) - 1, len(NAMES), 10**6])
@pytest.mark.parametrize("pattern", [None, ".*[13579]", "t/n/1.*", ".*x"])
async def test_any_cut_is_the_same_answer(
    size: int, pattern: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = NAMES[:50] if size < 10 else NAMES
    whole, cut = Hiding(), Hiding()
    async with made(MemoryLister(few, at_once=False), {"p": whole.plugin}) as m:
        expected = names(await m.ask(pattern=pattern))
        monkeypatch.setattr(masks_of_plugins, "SLICE_NAMES", size)
        async with made(MemoryLister(few, at_once=False), {"p": cut.plugin}) as other:
            assert names(await other.ask(pattern=pattern)) == expected
    assert all("7" not in name for name in expected)
    assert all(len(column) <= size for column in cut.seen)
    both = [pa.concat_arrays(hiding.seen) if hiding.seen else None for hiding in (whole, cut)]
    assert both[0] == both[1]  # every name once, in the same order


async def test_a_large_listing_is_shown_in_slices_that_are_bounded() -> None:
    many = [f"persistent://t/n/{number:06d}" for number in range(150_000)]
    hiding = Hiding()
    async with made(MemoryLister(many, at_once=False), {"p": hiding.plugin}) as m:
        answer = await m.ask()
        assert answer.topics == sum("7" not in name for name in many)
        answer.release()
    assert [len(column) for column in hiding.seen] == [65_536, 65_536, 150_000 - 2 * 65_536]
    long = [f"persistent://t/n/{number:04d}-{'x' * 30_000}" for number in range(1500)]
    hiding = Hiding()
    async with made(MemoryLister(long, at_once=False), {"p": hiding.plugin}) as m:
        (await m.ask()).release()
    assert len(hiding.seen) == 3
    assert max(column.nbytes for column in hiding.seen) <= masks_of_plugins.SLICE_BYTES


async def test_permits_are_those_of_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks_of_plugins, "SLICE_NAMES", 100)
    acquired: list[int] = []

    async def broker_core_visible(topics: Any) -> Any:
        acquired.append(m.permits.heap.acquired)
        return pc.is_valid(topics)

    async with made(plugins={"p": PluginOf(visible=broker_core_visible)}) as m:
        (await m.ask()).release()
    assert len(acquired) == len(NAMES) // 100
    # A byte for each name, whether it is visible, and the names of a slice with their offsets.
    assert len(NAMES) < max(acquired) < len(NAMES) + 100 * (len(NAMES[0]) + 2 + 16 + 2) + 10_240


async def test_a_mask_that_fails_in_one_slice_fails_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks_of_plugins, "SLICE_NAMES", 5000)
    calls = 0

    async def broker_core_visible(topics: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError
        return pc.is_valid(topics)

    async with made(plugins={"p": PluginOf(visible=broker_core_visible)}) as m:
        trace = Trace()
        with pytest.raises(PluginFailed, match="plugin 'p' failed: OSError"):
            await m.pipeline.answer(request(), trace)
        assert calls == 3
        assert [(step.plugin, step.answer) for step in trace.masks] == [("p", "error")]


async def test_all_slices_are_one_step_for_each_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks_of_plugins, "SLICE_NAMES", 5000)
    async with made(plugins={"p": Hiding().plugin, "q": Hiding("5").plugin}) as m:
        trace = Trace()
        (await m.pipeline.answer(request(), trace)).release()
        assert [(step.plugin, step.answer) for step in trace.masks] == [("p", "mask"), ("q", "mask")]
        assert all(step.seconds > 0 for step in trace.masks)
        assert trace.visible == sum("7" not in name and "5" not in name for name in NAMES)


async def test_slices_in_which_all_is_visible_hide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks_of_plugins, "SLICE_NAMES", 5000)

    async def broker_core_visible(topics: Any) -> Any:
        hides = pc.match_substring(topics, "0-00007")
        return None if not pc.any(hides).as_py() else pc.invert(hides)

    async with made(plugins={"p": PluginOf(visible=broker_core_visible)}) as m:
        found = names(await m.ask())
        assert sorted(set(NAMES) - set(found)) == [name for name in sorted(NAMES) if "0-00007" in name]
