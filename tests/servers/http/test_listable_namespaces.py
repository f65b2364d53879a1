from __future__ import annotations

import asyncio

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.names import NamespaceName
from broker_core.servers.http.listable_namespaces import let_in
from tests.support.clock import AGES
from tests.support.pipelines import made
from tests.support.plugins import PluginOf

NAMESPACES = [NamespaceName("acme", str(number)) for number in range(12)]


async def test_namespaces_do_not_wait_for_one_another() -> None:
    """Four are asked about at a time: each gate here answers only when three others are asked too."""
    together = asyncio.Barrier(4)

    async def gate() -> None:
        await together.wait()

    async with made(plugins={"gate": PluginOf(authorize=gate)}) as m:
        assert await let_in(m.pipeline, Asker(), NAMESPACES, _deadline()) == NAMESPACES


async def test_a_gate_that_fails_is_an_error() -> None:
    def gate() -> None:
        raise OSError

    failed: list[NamespaceName] = []
    async with made(plugins={"gate": PluginOf(authorize=gate)}) as m:
        with pytest.raises(ListingFailed) as caught:
            await let_in(
                m.pipeline,
                Asker(),
                NAMESPACES,
                _deadline(),
                failed=lambda name, _failure: failed.append(name),
            )
        assert caught.value.cause is Cause.PLUGIN
        assert failed
        assert {*failed} <= {*NAMESPACES}


def _deadline() -> float:
    return asyncio.get_running_loop().time() + AGES
