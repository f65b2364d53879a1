"""The masks (``broker_core_visible``): all masks of a namespace are asked, and their answers are ANDed.

A mask that fails is always an error, whatever its ``on_failure`` is: a failure must not show hidden topics.

Lookups carry no properties. A mask that selects by properties would answer a request without any otherwise than the
client's listing: a topic that the listing showed must not be hidden here, or ``subscribe()`` of the Java client fails.
A plugin that does not declare its dependencies may depend on properties; whether it does is known after its call, since
it has to read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.counted import counted
from broker_core.immutable import copied
from broker_core.names import NamespaceName
from broker_core.plugin_api import NO_PROPERTIES, ListingRequest, RecordedProperties, is_of_properties
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.failures import ChainStep, PluginFailed
from broker_core.plugins.hooks.dependencies import DeclaredDependencies, KnownVersions, VersionHook
from broker_core.plugins.load.registry import LoadedPlugin
from broker_core.plugins.namespace_chain import NamespaceChains

__all__ = ["VISIBLE", "AsksMask", "MaskCheck", "MaskHook", "WatchedProperties", "and_masks", "checked_mask"]

VISIBLE: Final = "broker_core_visible"

#: Asks a mask about a column of names, bypassing its statistics and its breaker; ``None`` shows all.
AsksMask: TypeAlias = Callable[[Any], Awaitable[Any | None]]
#: Gets the plugin that was asked, the names, its answer, and a function to ask it once more.
MaskCheck: TypeAlias = Callable[[str, Any, Any | None, AsksMask], Awaitable[None]]


class MaskHook:
    """Caller of the plugins that mask."""

    def __init__(
        self, chains: NamespaceChains, dependencies: DeclaredDependencies, versions: VersionHook
    ) -> None:
        self._chains = chains
        self._dependencies = dependencies
        self._versions = versions
        self._are_there = VISIBLE in chains.hooks
        #: Called with the answer of each mask; an exception replaces the answer. For tests of plugins.
        self.check_mask: MaskCheck | None = None

    def plugins(self, namespace: NamespaceName) -> list[str]:
        """The plugins that mask listings of this namespace."""
        return [caller.name for caller in self._chains.of(namespace).of(VISIBLE)]

    def depends_on(self, namespace: NamespaceName) -> frozenset[str]:
        """All dependencies of the masks of this namespace."""
        return frozenset().union(*(self._dependencies.of(name) for name in self.plugins(namespace)))

    async def versions(self, request: ListingRequest, known: KnownVersions) -> tuple[str, ...] | None:
        """The versions of all masks of this namespace; ``None`` if one of them gives none.

        Raises :exc:`PluginFailed` for any failure, as :meth:`visible` does.
        """
        return await self._versions.of_all(request, self.plugins(request.namespace), known)

    async def visible(
        self,
        request: ListingRequest,
        topics: Any,
        *,
        steps: list[ChainStep] | None = None,
        by_name: bool = False,
    ) -> Any | None:
        """The masks of all plugins for this namespace, ANDed; ``None`` if everything is visible.

        ``topics`` is an Arrow column of full names, the mask an Arrow boolean array of the same length. ``steps``
        gets one entry for each plugin that was asked. ``by_name`` is for a request that has no properties (a lookup):
        then only masks that do not depend on them count. Raises :exc:`PluginFailed` for any failure.
        """
        if not self._are_there or not len(topics):
            return None
        length = len(topics)
        clock = asyncio.get_running_loop().time
        mask: Any | None = None
        for caller in self._chains.of(request.namespace).of(VISIBLE):
            watch = WatchedProperties(caller.plugin) if by_name else None
            if watch is not None:
                if watch.depends:
                    continue
                request = copied(request, properties=watch.properties)
            started = clock()
            try:
                recorded = self._dependencies.request_for(request, caller.name)
                own, _ = await caller.call(recorded, partial(_check, length), topics=topics)
            except PluginFailed as failure:
                if steps is not None:
                    steps.append(ChainStep(caller.name, "error", clock() - started, failure.detail))
                raise
            if watch is not None and watch.depends:
                continue
            if self.check_mask is not None:
                await self.check_mask(caller.name, topics, own, partial(_ask_again, caller, request))
            mask = and_masks(mask, own)
            if steps is not None:
                shown = length if own is None else own.true_count
                steps.append(ChainStep(caller.name, "mask", clock() - started, shown=shown))
        return mask


def and_masks(first: Any | None, second: Any | None) -> Any | None:
    """Both masks at once; ``None`` is a mask that shows all."""
    if first is None:
        return second
    if second is None:
        return first
    return pc.and_(first, second)


def _check(length: int, answer: object, _request: ListingRequest) -> tuple[Any | None, str]:
    mask = checked_mask(answer, length)
    return mask, "pass_through" if mask is None else "mask"


async def _ask_again(caller: HookCaller, request: ListingRequest, topics: Any) -> Any | None:
    """The answer of a mask that is asked once more, bypassing its statistics and its breaker."""
    return await caller.uncounted(request, partial(_check, len(topics)), topics=topics)


def checked_mask(answer: object, length: int) -> Any | None:
    """The mask as an Arrow boolean array of ``length``, or ``None`` if the plugin answered that all is visible.

    Takes Arrow arrays, chunked ones too, and one-dimensional numpy arrays, of booleans only: an array of indices, or of
    0 and 1, would not filter as intended. Raises :exc:`TypeError` or :exc:`ValueError`.
    """
    if answer is None:
        return None
    if isinstance(answer, np.ndarray):
        if answer.dtype != np.bool_ or answer.ndim != 1:
            raise TypeError(
                f"the mask is a numpy array of {answer.dtype}, {answer.ndim}-dimensional, not of bool"
            )
        answer = pa.array(answer)
    elif isinstance(answer, pa.ChunkedArray):
        answer.validate(full=True)
        answer = answer.combine_chunks()
    if not isinstance(answer, pa.Array):
        instead = ": write pyarrow.array(mask)" if isinstance(answer, list | tuple) else ""
        raise TypeError(
            f"the mask is a {type(answer).__name__}, not an Arrow or numpy array of booleans{instead}"
        )
    if not pa.types.is_boolean(answer.type):
        raise TypeError(f"the mask is an Arrow array of {answer.type}, not of booleans")
    answer.validate(full=True)
    if len(answer) != length:
        raise ValueError(f"the mask has {counted(len(answer), 'value')} for {counted(length, 'topic')}")
    if answer.null_count:
        raise ValueError(
            f"the mask has {counted(answer.null_count, 'null')}: it must say true or false for each topic"
        )
    return answer


_HOOK = "broker_core_depends_on"


class WatchedProperties:
    """Empty properties for one plugin, which record being read. ``depends`` is whether its answer depends on them."""

    __slots__ = ("_says", "_was_read", "properties")

    def __init__(self, plugin: LoadedPlugin) -> None:
        self._was_read = False
        self.properties = RecordedProperties(NO_PROPERTIES, self._note)
        self._says: bool | None = None
        if _HOOK in plugin.implementations:
            self._says = any(map(is_of_properties, plugin.depends_on))

    @property
    def depends(self) -> bool:
        """Whether the plugin declares the dependency; if it declares nothing, whether it has read any so far."""
        return self._was_read if self._says is None else self._says

    def _note(self, _word: str) -> None:
        self._was_read = True
