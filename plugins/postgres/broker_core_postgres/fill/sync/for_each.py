"""Calling a coroutine for each of many items, several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from broker_core.errors import BrokerCoreError

__all__ = ["for_each"]

T = TypeVar("T")


async def for_each(items: Sequence[T], call: Callable[[T], Awaitable[None]], parallel: int) -> None:
    """Call ``call`` for each item, at most ``parallel`` at once. The first error cancels the others and is raised."""
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await call(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(parallel, len(items))):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    errors: Iterable[BaseException] = group.exceptions
    ours = [error for error in errors if isinstance(error, BrokerCoreError)]
    found = ours[0] if ours else group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
