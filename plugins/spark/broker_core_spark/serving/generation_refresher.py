"""Refreshing the served generation: read the store's pointer, verify in a thread, swap.

The served generation stays until the next one is verified, and if that fails. Requests keep the generation that they
began with. Its map ends with the last of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa
import structlog

from broker_core.errors import BrokerCoreError
from broker_core_spark.serving.changes.table_change_log import TableChangeLog
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.pass_to_next_lister import UNDECLARED_STATIC
from broker_core_spark.serving.served_generation import ServedGeneration
from broker_core_spark.settings import SparkSettings
from broker_core_spark.store import PublishedPointer, Store, current_pointer, newest_changes, open_store

__all__ = ["GenerationRefresher", "RefusedGeneration", "open_generation"]

log = structlog.get_logger(__name__)

#: Seconds that the broker's start waits for the first generation. Questions are passed on until it is verified.
_PATIENCE: Final = 30.0
#: Seconds between two tries of a refused generation, at most.
_LONGEST_WAIT: Final = 300.0


@dataclass(frozen=True, slots=True)
class RefusedGeneration:
    """A generation that cannot be served, and why. Its id is ``None`` if the pointer is unreadable."""

    generation: str | None
    reason: str


def open_generation(
    settings: SparkSettings, store: Store, generation: str, before: Generation | None = None
) -> Generation:
    """A generation, verified and mapped, with its parts that ``before`` has. Blocks.

    Raises the errors of :meth:`Generation.open`, and ``OSError``.
    """
    folder = None if settings.folder is None else str(settings.folder)
    try:
        return Generation.open(store, generation, directory=folder, before=before)
    finally:
        _give_back_memory()


def _give_back_memory() -> None:
    """Return free memory to the system. The allocators would keep it until the next generation."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)


class GenerationRefresher:
    """Follows the pointer of ``settings.store``, on one event loop.

    ``serve`` prepares a verified generation for answers with the settings of now. ``checked`` gets the result of each
    verification, ``ok`` or ``failed``. ``report`` gets the problems, in words for everybody.
    """

    def __init__(
        self,
        settings: SparkSettings,
        serve: Callable[[Generation, SparkSettings], ServedGeneration],
        checked: Callable[[str], None],
        report: Callable[[Collection[str]], None],
    ) -> None:
        self._settings = settings
        self._serve = serve
        self._checked = checked
        self._report = report
        self._store: Store | None = None
        self._task: asyncio.Task[None] | None = None
        self._looked = asyncio.Event()
        self._wake = asyncio.Event()  # with other settings the next look is at once
        self._looking = asyncio.Lock()
        self._tries = 0
        self._not_before = 0.0
        #: The served generation.
        self.served: ServedGeneration | None = None
        #: The pointer to the served generation.
        self.published: PublishedPointer | None = None
        #: The fault of the published generation, if it cannot be served.
        self.refused: RefusedGeneration | None = None
        #: The reason why no generation is served, in words for everybody.
        self.why_none = "the first generation is still being checked"

    async def start(self, patience: float = _PATIENCE) -> None:
        """Follow the pointer. Returns when the first generation is served, or after ``patience`` seconds."""
        self._task = asyncio.get_running_loop().create_task(self._follow())
        try:
            async with asyncio.timeout(patience):
                await self._looked.wait()
        except TimeoutError:
            log.info("the generation is still being checked; until then its questions are passed on")

    def is_source_of(self, namespace: str) -> bool:
        """Whether a table alone says which topics a namespace has, by the operator's declaration.

        Before a generation is served, that may be any namespace.
        """
        manifest = None if self.served is None else self.served.generation.manifest
        return self._settings.serves_as_built and (
            manifest is None or (manifest.static and namespace in manifest.namespaces)
        )

    def follow(self, settings: SparkSettings) -> None:
        """Apply other live settings from now on."""
        self._settings = settings
        if self.served is not None:
            self.served.follow(settings)
        self._wake.set()

    async def close(self) -> None:
        """Stop, and serve nothing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        served, self.served = self.served, None
        if served is not None:
            await served.close()

    async def _follow(self) -> None:
        while True:
            self._wake.clear()
            await self.refresh()
            self._looked.set()
            with contextlib.suppress(TimeoutError):
                # Not wait_for: in Python 3.11 it loses a cancellation that arrives together with the result.
                async with asyncio.timeout(self._settings.refresh):
                    await self._wake.wait()

    async def refresh(self) -> None:
        """Look at the pointer once. Faults are in :attr:`refused`."""
        async with self._looking:
            generation: str | None = None
            try:
                if self._store is None:
                    self._store = await asyncio.to_thread(
                        open_store, self._settings.store, self._settings.store_options
                    )
                published = await asyncio.to_thread(current_pointer, self._store)
                if published is None:
                    self._nothing_published()
                    return
                generation = published.generation
                if self.served is not None and self.served.generation.id == generation:
                    if published != self.published:  # built again, with the same result
                        self.served.built(published.when)
                    self.published = published
                    await self._look_at_table(self._store, self.served, published.when)
                    self._accept()
                    return
                refused = self.refused
                if (
                    refused is not None
                    and refused.generation == generation
                    and time.monotonic() < self._not_before
                ):
                    return  # it is not to be tried again yet
                served = self.served
                # A generation that gave wrong answers is verified anew.
                before = None if served is None or served.verifier.wrong else served.generation
                opened = await asyncio.to_thread(
                    open_generation, self._settings, self._store, generation, before
                )
            except (BrokerCoreError, OSError) as error:
                self._refuse(generation, str(error))
            except Exception as error:  # noqa: BLE001 - whatever a file makes a reader do, the old one is served on
                said = f"{type(error).__name__}; the broker's log says more"
                self._refuse(generation, f"{type(error).__name__}: {error}", said=said)
            else:
                self._checked("ok")
                await self._swap(self._store, opened, published)

    async def _look_at_table(self, store: Store, served: ServedGeneration, since: datetime) -> None:
        """Serve the changes of the last look at a table, if there was one since the publication."""
        manifest, known = served.generation.manifest, served.table
        if manifest.static:
            after = 0 if known is None else known.changes_of_table.number
            found = await asyncio.to_thread(newest_changes, store, manifest.id, after)
            if found is not None and found.looked >= since:
                served.looked_at(await asyncio.to_thread(TableChangeLog, manifest.catalogue_id, found))

    def _nothing_published(self) -> None:
        """Handle a store without pointers: before its first build that is no fault, but it is while a generation is
        served.
        """
        if self.served is not None:
            self._refuse(None, f"nothing is published in {self._settings.store} any more")
            return
        nothing = f"nothing is published in {self._settings.store} yet"
        if self.why_none != nothing:
            log.info("no generation yet", reason=nothing)
        self._accept()
        self.why_none = nothing

    def _accept(self) -> None:
        self.refused, self._tries = None, 0
        served = self.served
        if served is not None and served.verifier.wrong:
            wrong = f"generation {served.generation.id} has wrong answers, {served.verifier.wrong} so far"
            self._report([f"{wrong}, and their questions are passed on: build anew"])
        else:
            self._report(())

    def _refuse(self, generation: str | None, reason: str, *, said: str | None = None) -> None:
        if generation is not None:
            self._checked("failed")
        self._tries += 1
        self._not_before = time.monotonic() + min(
            self._settings.refresh * 2 ** min(self._tries, 20), _LONGEST_WAIT
        )
        which = "what is published" if generation is None else f"generation {generation}"
        refused = RefusedGeneration(generation, reason)
        if refused != self.refused:
            serving = None if self.served is None else self.served.generation.id
            log.error("generation not served", generation=generation, reason=reason, still_served=serving)
        self.refused = refused
        self.why_none = f"{which} is not served: {said or reason}"
        self._report([self.why_none])

    async def _swap(self, store: Store, opened: Generation, published: PublishedPointer) -> None:
        old, served = self.served, self._serve(opened, self._settings)
        served.built(published.when)
        with contextlib.suppress(BrokerCoreError, OSError):  # the next look at the pointer reports it
            await self._look_at_table(store, served, published.when)
        if old is not None:
            # Questions after the swap need not wait for all changes.
            await served.warm(list(old.followers))
        served.follow(self._settings)  # which may be others by now
        self.served, self.published = served, published
        self._accept()
        log.info(
            "generation served",
            generation=opened.id,
            number=published.number,
            questions=opened.manifest.question_count,
            topics=opened.manifest.topics,
            before=None if old is None else old.generation.id,
        )
        if opened.manifest.static and not self._settings.serves_as_built:
            log.warning("the generation answers nothing", generation=opened.id, reason=UNDECLARED_STATIC)
