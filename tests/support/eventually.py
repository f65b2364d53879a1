"""Waiting for a state: a condition is polled until it holds or its deadline has passed. No test sleeps instead."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

__all__ = ["close_listening", "eventually", "eventually_sync", "turns"]

T = TypeVar("T")

_POLL = 0.005  # seconds; the first looks come without any pause
_LONGEST_PAUSE = 0.05  # seconds: a look may ask a server, or walk over a folder
_PATIENCE = 60.0  # seconds: only a test that fails waits so long, whatever else the machine does


@overload
async def eventually(
    condition: Callable[[], Awaitable[T]], timeout: float = ..., *, what: str | None = ...
) -> T: ...
@overload
async def eventually(condition: Callable[[], T], timeout: float = ..., *, what: str | None = ...) -> T: ...
async def eventually(
    condition: Callable[[], Any], timeout: float = _PATIENCE, *, what: str | None = None
) -> object:
    """The first true value of ``condition`` (sync or async), looked at until ``timeout`` seconds have passed.

    An :exc:`AssertionError` of the condition counts as "not yet", so that it may hold plain assertions; at the end the
    last one is raised, or one that names ``what`` was awaited.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    deadline = begun + timeout
    while True:
        failure: AssertionError | None = None
        try:
            value: object = condition()
            if inspect.isawaitable(value):
                value = await asyncio.wait_for(value, max(0.001, deadline - loop.time()))
            if value:
                return value
        except AssertionError as error:
            failure = error
        except TimeoutError:
            if loop.time() < deadline:
                raise  # the condition's own
        if loop.time() >= deadline:
            raise failure or AssertionError(_too_late(condition, timeout, what))
        await asyncio.sleep(_pause(loop.time() - begun))


def eventually_sync(condition: Callable[[], T], timeout: float = _PATIENCE, *, what: str | None = None) -> T:
    """Wait without an event loop, as for a process that a test started."""
    begun = time.monotonic()
    deadline = begun + timeout
    while True:
        failure: AssertionError | None = None
        try:
            value = condition()
            if value:
                return value
        except AssertionError as error:
            failure = error
        if time.monotonic() >= deadline:
            raise failure or AssertionError(_too_late(condition, timeout, what))
        time.sleep(_pause(time.monotonic() - begun))


def _pause(waited: float) -> float:
    """Seconds until the next look: a sixteenth of a long wait, which more looks would not end much sooner."""
    return min(_LONGEST_PAUSE, max(_POLL, waited / 16))


def _too_late(condition: Callable[[], object], timeout: float, what: str | None) -> str:
    name = what or getattr(condition, "__name__", repr(condition))
    return f"not within {timeout:g} s: {name}"


async def turns(count: int = 5) -> None:
    """Let every task run that can run: so many turns of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


async def close_listening(server: asyncio.Server) -> None:
    """Close a server after it has served what came: asyncio loses a connection that it accepts as the server closes."""
    await turns()
    server.close()
