"""The test kit finds masks whose verdict depends on other names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core.client import ServerRefused
from broker_core.testing import BlockingServer, serve
from tests.support.plugins import PluginOf

TOPICS = [f"persistent://acme/shop/{number:02d}" for number in range(40)]


def first_half(topics: Any) -> Any:
    return np.arange(len(topics)) < len(topics) / 2


def neighbours(topics: Any) -> Any:
    lengths = pc.binary_length(topics).to_numpy()
    return np.concatenate([[True], lengths[1:] == lengths[:-1]]) & (np.array(topics) > topics[0].as_py())


def all_of_few(topics: Any) -> Any:
    return None if len(topics) < 30 else pa.array([False] * len(topics))


@pytest.mark.parametrize("mask", [first_half, neighbours, all_of_few])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_mask_that_looks_at_the_column_is_found(mask: Callable[[Any], Any], is_async: bool) -> None:
    async def later(topics: Any) -> Any:
        return mask(topics)

    plugin = PluginOf(visible=later if is_async else lambda topics: mask(topics))  # noqa: PLW0108
    async with serve({"p": plugin}, topics=TOPICS) as server:
        with pytest.raises(
            ServerRefused,
            match=r"plugin 'p' does not mask each name by itself: .*persistent://acme/shop/\d\d",
        ):
            await server.list("acme/shop")
    async with serve({"p": plugin}, topics=TOPICS, check_masks=False) as server:
        assert len(await server.list("acme/shop")) < len(TOPICS)


async def test_a_mask_of_names_is_asked_again_unseen() -> None:
    columns: list[Any] = []

    async def broker_core_visible(request: Any, topics: Any) -> Any:
        columns.append(topics)
        await request.reserve(100)
        return pc.match_substring(topics, "7")

    async with serve({"p": PluginOf(visible=broker_core_visible)}, topics=TOPICS) as server:
        assert (await server.list("acme/shop")).topics == [name for name in TOPICS if "7" in name]
        whole, *pieces = columns
        assert len(pieces) == 3
        assert sorted(name for piece in pieces for name in piece.to_pylist()) == sorted(whole.to_pylist())
        value = (await server.metrics()).value
        assert (
            value("broker_core_listing_plugin_calls_total", plugin="p", hook="visible", outcome="mask") == 1
        )


async def test_a_mask_that_cannot_be_asked_about_some_names_is_found() -> None:
    def broker_core_visible(topics: Any) -> Any:
        if len(topics) != len(TOPICS):
            raise KeyError("only all of them")
        return None

    async with serve({"p": PluginOf(visible=broker_core_visible)}, topics=TOPICS) as server:
        with pytest.raises(
            ServerRefused, match=r"failed when its mask was asked about .*KeyError: 'only all"
        ):
            await server.list("acme/shop")


def test_it_is_there_without_async_too() -> None:
    plugin = PluginOf(visible=lambda topics: first_half(topics))  # noqa: PLW0108
    says = "does not mask each name by itself"
    with BlockingServer({"p": plugin}, topics=TOPICS) as server, pytest.raises(ServerRefused, match=says):
        server.list("acme/shop")
    with BlockingServer({"p": plugin}, topics=TOPICS, check_masks=False) as server:
        assert len(server.list("acme/shop")) == len(TOPICS) / 2
