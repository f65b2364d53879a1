"""The rights of followers, which are looked at again before each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from broker_core.access import Access, Asker
from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugins import PluginFailed
from broker_core.service.following.follower import Follower

__all__ = ["end_refused"]

#: Gates that are asked at a time.
_AT_A_TIME: Final = 4


async def end_refused(
    pipeline: Pipeline,
    namespace: NamespaceName,
    followers: Iterable[Follower],
    leave: Callable[[Follower], None],
) -> None:
    """End the followers that may not list the namespace any more, and call ``leave`` with each.

    While a gate fails, its followers are suspended.
    """
    if not pipeline.has_guards:
        return
    alike_by_key: dict[tuple[object, ...], list[Follower]] = {}
    for follower in list(followers):
        asker = follower.asker
        if pipeline.passes_now(asker, namespace):
            continue
        key = (asker.role, asker.original_principal, asker.host, asker.client_version, asker.transport)
        alike_by_key.setdefault(key, []).append(follower)
    places = asyncio.Semaphore(_AT_A_TIME)

    async def check(alike: list[Follower]) -> None:
        async with places:
            failure = await _refusal(pipeline, namespace, alike[0].asker)
        for each in alike:
            if failure is None:
                each.resume()
            elif isinstance(failure, PluginFailed):  # a gate that says nothing: nor do we, for now
                each.suspend(failure)
            else:
                each.end(failure)
                leave(each)

    await asyncio.gather(*(check(alike) for alike in alike_by_key.values()))


async def _refusal(pipeline: Pipeline, namespace: NamespaceName, asker: Asker) -> ListingFailed | None:
    try:
        await pipeline.authorize(Access("list", namespace, None, asker))
    except ListingFailed as failure:
        return failure
    return None
