"""Running one function of a plugin: its result, or one of three errors."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.plugins.call.event_loop_time import LoopTime
from broker_core.plugins.call.plugin_runner import contained, result_of
from broker_core.plugins.call.plugin_threads import RaisedByPlugin


async def test_the_loop_survives_a_task_that_wants_to_exit() -> None:
    async def function() -> None:
        raise SystemExit(1)

    task = asyncio.create_task(contained(function, LoopTime("p", "list_topics")))
    await asyncio.wait([task])
    with pytest.raises(RaisedByPlugin) as raised:
        result_of(task)
    assert isinstance(raised.value.error, SystemExit)
