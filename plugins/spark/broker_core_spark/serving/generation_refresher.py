"""The generation that is served: found by the store's pointer, checked in a thread, swapped at once.

What is served stays so while the next one is opened and checked, and where that fails. Requests that are under way
keep the generation that they began with; its map goes with the last of them.
"""

from __future__ import annotations

import asyncio
import ctypes
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import structlog

from broker_core.errors import BrokerCoreError
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.served_generation import ServedGeneration
from broker_core_spark.settings import SparkSettings
from broker_core_spark.store import Store, open_store
from broker_core_spark.store.published_pointers import PublishedPointer, current_pointer

__all__ = ["GenerationRefresher", "RefusedGeneration", "open_generation"]

log = structlog.get_logger(__name__)

#: Seconds after which a generation that was refused is looked at again, at most.
_LONGEST_WAIT: Final = 300.0


@dataclass(frozen=True, slots=True)
class RefusedGeneration:
    """A generation that cannot be served (``None``: it is not known which), and why."""

    generation: str | None
    reason: str


def open_generation(settings: SparkSettings, store: Store, generation: str) -> Generation:
    """A generation, wholly checked and mapped. Blocks; raises what :exc:`Generation.open` raises, and ``OSError``."""
    folder = None if settings.folder is None else str(settings.folder)
    try:
        return Generation.open(store, generation, directory=folder)
    finally:
        _give_back_memory()


def _give_back_memory() -> None:
    """What checking needed goes back to the system: the allocators would keep it until the next generation."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)


class GenerationRefresher:
    """Follows the pointer of ``settings.store``. Made and used on one event loop.

    ``serve`` makes a generation that was checked ready to answer. ``checked`` is told the result of each check, ``ok``
    or ``failed``; ``report`` why a generation is not served, in words that anybody may see.
    """

    def __init__(
        self,
        settings: SparkSettings,
        serve: Callable[[Generation], ServedGeneration],
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
        self._looking = asyncio.Lock()
        self._tries = 0
        self._not_before = 0.0
        #: What answers, once a generation was checked.
        self.served: ServedGeneration | None = None
        #: When and as which number it was published.
        self.published: PublishedPointer | None = None
        #: What is wrong with the one that should be served, if anything is.
        self.refused: RefusedGeneration | None = None

    async def start(self, patience: float) -> None:
        """Follow the pointer from now on; returns when the first generation is served, or after ``patience`` s."""
        self._task = asyncio.get_running_loop().create_task(self._follow())
        try:
            async with asyncio.timeout(patience):
                await self._looked.wait()
        except TimeoutError:
            log.info("the generation is still being checked; until then its questions are passed on")

    async def close(self) -> None:
        """Let go of everything."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        served, self.served = self.served, None
        if served is not None:
            served.close()

    async def _follow(self) -> None:
        while True:
            await self.refresh()
            self._looked.set()
            await asyncio.sleep(self._settings.refresh)

    async def refresh(self) -> None:
        """Look at the pointer once; whatever is wrong is told by :attr:`refused`."""
        async with self._looking:
            generation: str | None = None
            try:
                if self._store is None:
                    self._store = await asyncio.to_thread(
                        open_store, self._settings.store, self._settings.store_options
                    )
                published = await asyncio.to_thread(current_pointer, self._store)
                if published is None:
                    self._refuse(None, f"nothing is published in {self._settings.store} yet", level="warning")
                    return
                generation = published.generation
                if self.served is not None and self.served.generation.id == generation:
                    self.published = published
                    self._accept()
                    return
                if self._waits_for(generation):
                    return
                opened = await asyncio.to_thread(open_generation, self._settings, self._store, generation)
            except (BrokerCoreError, OSError) as error:
                self._refuse(generation, str(error))
            except Exception as error:  # noqa: BLE001 - whatever a file makes a reader do, the old one is served on
                said = f"{type(error).__name__}; the broker's log says more"
                self._refuse(generation, f"{type(error).__name__}: {error}", said=said)
            else:
                self._checked("ok")
                await self._swap(opened, published)

    def _waits_for(self, generation: str) -> bool:
        """Whether it is too early to look again at a generation that was refused."""
        refused = self.refused
        return (
            refused is not None and refused.generation == generation and time.monotonic() < self._not_before
        )

    def _accept(self) -> None:
        self.refused, self._tries = None, 0
        served = self.served
        if served is not None and served.wrong_answers:
            wrong = f"generation {served.generation.id} has wrong answers, {served.wrong_answers} so far"
            self._report([f"{wrong}, and their questions are passed on: build anew"])
        else:
            self._report(())

    def _refuse(
        self, generation: str | None, reason: str, *, level: str = "error", said: str | None = None
    ) -> None:
        if generation is not None:
            self._checked("failed")
        self._tries += 1
        wait = min(self._settings.refresh * 2 ** min(self._tries, 20), _LONGEST_WAIT)
        self._not_before = time.monotonic() + wait
        refused = RefusedGeneration(generation, reason)
        if refused != self.refused:
            serving = None if self.served is None else self.served.generation.id
            getattr(log, level)(
                "generation not served", generation=generation, reason=reason, still_served=serving
            )
        self.refused = refused
        which = "what is published" if generation is None else f"generation {generation}"
        self._report([f"{which} is not served: {said or reason}"] if level == "error" else [])

    async def _swap(self, opened: Generation, published: PublishedPointer) -> None:
        old, served = self.served, self._serve(opened)
        if old is not None:
            # So that not all who ask next wait for what changed since.
            await served.warm(list(old.followers))
        self.served, self.published = served, published
        self._accept()
        log.info(
            "generation served",
            generation=opened.id,
            number=published.number,
            questions=opened.questions,
            topics=opened.topics,
            before=None if old is None else old.generation.id,
        )
