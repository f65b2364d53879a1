"""All masks are asked, and ANDed; one that fails is an error."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from broker_core.plugins import (
    ChainStep,
    PluginFailed,
)
from broker_core.plugins.hooks.masks import and_masks
from tests.support.narrowed import present
from tests.support.plugin_chains import SUCCESS, TOPICS, dispatcher, masks
from tests.support.plugins import PluginOf, asked


async def test_masks_are_anded() -> None:
    chain = dispatcher(
        {
            "a": masks(pa.array([True, True, False])),
            "b": masks(None),
            "c": masks(np.array([True, False, True])),
        }
    )
    steps: list[ChainStep] = []
    mask = present(await chain.mask_hook.visible(asked(), TOPICS, steps=steps))
    assert mask.to_pylist() == [True, False, False]
    assert [(step.plugin, step.answer) for step in steps] == [("a", "mask"), ("b", "mask"), ("c", "mask")]
    assert await dispatcher({"b": masks(None)}).mask_hook.visible(asked(), TOPICS) is None
    assert await chain.mask_hook.visible(asked(), TOPICS.slice(0, 0)) is None


@pytest.mark.parametrize(
    "answer", [ValueError("x"), pa.array([True]), [True, True, True], pa.array([1, 1, 1])]
)
async def test_a_mask_that_fails_is_always_an_error(answer: object) -> None:
    chain = dispatcher({"a": masks(answer)}, {"a": {"on_failure": "next"}})
    steps: list[ChainStep] = []
    with pytest.raises(PluginFailed, match=r"^plugin 'a' ") as caught:
        await chain.mask_hook.visible(asked(), TOPICS, steps=steps)
    assert [step.answer for step in steps] == ["error"]
    assert caught.value.plugin == "a"


async def test_a_failing_mask_opens_its_breaker_though_its_lister_answers() -> None:
    async def lister() -> object:
        return SUCCESS

    def mask() -> object:
        raise ValueError("x")

    chain = dispatcher({"a": PluginOf(list_topics=lister, visible=mask)})
    ((_, lists),) = chain.lister_hook.chain(asked().namespace)
    assert lists is not None
    for reason in ["plugin_error"] * 5 + ["plugin_breaker"]:
        async with chain.lister_hook.asking(lists, asked()) as (listed, _):
            assert listed == SUCCESS
        with pytest.raises(PluginFailed) as caught:
            await chain.mask_hook.visible(asked(), TOPICS)
        assert caught.value.reason == reason
    assert chain.describe()[0]["state"] == "breaker open"


def test_all_masks_must_agree() -> None:
    first, second = pa.array([True, True, False]), pa.array([True, False, False])
    assert and_masks(first, second).to_pylist() == [True, False, False]  # type: ignore[union-attr]
    assert and_masks(None, second) is second
    assert and_masks(first, None) is first
    assert and_masks(None, None) is None
