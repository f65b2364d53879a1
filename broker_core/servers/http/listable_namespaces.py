"""The namespaces that an HTTP client may list, by the gates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from broker_core.access import Access, Asker
from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugins import RefusedByPlugin

__all__ = ["let_in"]

#: Namespaces that gates are asked about at a time: half of a plugin's threads, so that clients have the others.
_AT_A_TIME: Final = 4


async def let_in(
    pipeline: Pipeline,
    asker: Asker,
    namespaces: Sequence[NamespaceName],
    deadline: float,
    *,
    failed: Callable[[NamespaceName, ListingFailed], object] = lambda _namespace, _failure: None,
) -> list[NamespaceName]:
    """The namespaces that all gates let the asker list, asked about a few at a time.

    A gate that fails is an error, as everywhere: raises its :exc:`~broker_core.errors.ListingFailed` after ``failed``
    was called with it. It ends the other questions: no gate is asked for an answer that is not sent.
    """
    places = asyncio.Semaphore(_AT_A_TIME)

    async def is_let_in(namespace: NamespaceName) -> bool:
        async with places:
            try:
                await pipeline.ask_gates(Access("list", namespace, None, asker), deadline)
            except RefusedByPlugin:
                return False
            except ListingFailed as failure:
                failed(namespace, failure)
                raise
            return True

    try:
        async with asyncio.TaskGroup() as group:
            checks = [group.create_task(is_let_in(namespace)) for namespace in namespaces]
    except* ListingFailed as failures:
        raise failures.exceptions[0] from None
    return [namespace for namespace, task in zip(namespaces, checks, strict=True) if task.result()]
