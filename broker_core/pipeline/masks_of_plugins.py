"""The masks of a listing, asked slice by slice, so that the names of a large listing are never all in memory.

A mask judges each name by itself (``broker_core_visible``): its verdict does not depend on the other names of the
column. So slices in any cut give the same answer as the whole.

Masked listings are cached by the versions that the masks give (``broker_core_version``): only if each plugin that masks
the namespace gives a version before the work, and under all that these plugins depend on, with the names that they saw
(by the identity of the listing, and its rows). If the names or a version differ, the masks are asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Final

import numpy as np

from broker_core.concurrency import EACH_NAME
from broker_core.listing import Listing, Selection, rows_key_of
from broker_core.names import NamespaceName
from broker_core.pipeline.change_notices import ChangeNotices, Mark
from broker_core.pipeline.listers.answer_store import AnswerStore
from broker_core.pipeline.request.held_permit import names_bytes
from broker_core.pipeline.request.listing_in_progress import ListingInProgress
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.plugin_api import AnswerKey, ListingRequest, key_of
from broker_core.plugins import ChainStep, Dispatcher

__all__ = ["SLICE_BYTES", "SLICE_NAMES", "MaskSlices", "MaskedAnswers"]

#: The most names that are shown to the masks at a time, and their bytes on average. A mask costs a call for each slice,
#: which is nothing beside its work for 65,536 names.
SLICE_NAMES: Final = 65_536
SLICE_BYTES: Final = 16 * 1024 * 1024
#: The kind of masked answers in the store.
_KIND: Final = "masked"


@dataclass(slots=True, eq=False)
class MaskSlices:
    """Applies the masks of the plugins; one for a pipeline."""

    _dispatcher: Dispatcher
    _workers: Workers
    _kept: MaskedAnswers

    async def visible(self, progress: ListingInProgress, selection: Selection, held: int) -> Selection:
        """The topics of a selection that may be seen.

        ``held`` are the bytes of a listing that was made for this request alone. Raises
        :exc:`~broker_core.plugins.failures.PluginFailed` if a mask fails.
        """
        versions = await self._dispatcher.mask_hook.versions(progress.request, progress.versions)
        if versions is None or held:
            return await self._masked(progress, selection, held)
        mark = self._kept.notices.mark(progress.request.namespace)
        visible = self._kept.find(progress.request, selection, versions)
        if visible is None:
            visible = await self._masked(progress, selection, held)
            # Again after the work: a change meanwhile must not be kept under the version of before.
            masking = self._dispatcher.mask_hook.plugins(progress.request.namespace)
            if await self._dispatcher.version_hook.all_still(progress.request, masking, versions):
                self._kept.keep(progress.request, selection, versions, visible, mark)
        elif progress.trace is not None:
            progress.trace.visible = len(visible)
            progress.trace.masks = [
                ChainStep(plugin, "mask", kept=True, version=version)
                for plugin, version in zip(
                    self._dispatcher.mask_hook.plugins(progress.request.namespace), versions, strict=True
                )
            ]
        return visible

    async def _masked(self, progress: ListingInProgress, selection: Selection, held: int) -> Selection:
        """The topics of a selection that the masks leave."""
        trace, asker = progress.trace, progress.request.asker
        cost = EACH_NAME * len(selection)
        keep: np.ndarray[Any, np.dtype[np.bool_]] | None = None
        for low, high in _slices(selection):
            piece = selection if high - low == len(selection) else selection.range(low, high)
            # The column of names is made for the masks: their bytes, and their offsets twice.
            size = selection.heap_bytes + len(selection) + names_bytes(piece)
            await progress.held.reserve(held + size)
            names = await self._workers.call(asker, partial(attrgetter("names"), piece), cost)
            steps: list[ChainStep] = []
            try:
                mask = await self._dispatcher.mask_hook.visible(progress.request, names, steps=steps)
            finally:
                if trace is not None:
                    trace.masks = _together(trace.masks, steps)
            if mask is not None:
                if keep is None:
                    keep = np.ones(len(selection), dtype=np.bool_)
                keep[low:high] = mask.to_numpy(zero_copy_only=False)
            del names, mask  # before the next ones are made
        visible = selection
        if keep is not None:
            visible = await self._workers.call(asker, partial(selection.mask, keep), cost)
        if trace is not None:
            trace.visible = len(visible)
        return visible


def _slices(selection: Selection) -> Iterator[tuple[int, int]]:
    size = len(selection)
    average = selection.fields_size // max(size, 1) + 1
    step = max(1, min(SLICE_NAMES, SLICE_BYTES // average))
    for low in range(0, size, step):
        yield low, min(low + step, size)


def _together(before: list[ChainStep], steps: list[ChainStep]) -> list[ChainStep]:
    """One step for each plugin: the time of all slices, and its last answer."""
    of_plugin = {step.plugin: step for step in before}
    for step in steps:
        former = of_plugin.get(step.plugin)
        seconds = step.seconds + (0.0 if former is None else former.seconds)
        of_plugin[step.plugin] = replace(step, seconds=seconds)
    return list(of_plugin.values())


@dataclass(frozen=True, slots=True)
class _Masked:
    listing: Listing
    part: Any
    versions: tuple[str, ...]
    visible: Selection


@dataclass(slots=True, eq=False)
class MaskedAnswers:
    """The masked listings; ``words`` says what the masks of a namespace depend on."""

    _store: AnswerStore
    _words: Callable[[NamespaceName], frozenset[str]]
    notices: ChangeNotices

    def find(self, request: ListingRequest, seen: Selection, versions: tuple[str, ...]) -> Selection | None:
        """The visible topics of ``seen`` for a request, at these versions of the masks, if they are cached."""
        kept: _Masked | None = self._store.get((_KIND, self._key(request)))
        if kept is None or kept.listing is not seen.listing or kept.versions != versions:
            return None
        return kept.visible if kept.part == rows_key_of(seen) else None

    def keep(
        self,
        request: ListingRequest,
        seen: Selection,
        versions: tuple[str, ...],
        visible: Selection,
        since: Mark,
    ) -> None:
        """Keep the visible topics, unless a change was announced ``since`` the question."""
        if not self.notices.unchanged(request.namespace, since):
            return
        key = self._key(request)
        value = _Masked(seen.listing, rows_key_of(seen), versions, visible)
        own = key.text + visible.remembered_bytes + 2 * sum(map(len, versions))
        self._store.put((_KIND, key), request.namespace, value, seen.listing, own)

    def _key(self, request: ListingRequest) -> AnswerKey:
        # Listed topics mostly depend on pattern and properties: each has its own entry.
        return key_of(request, self._words(request.namespace) | {"pattern", "properties"})
