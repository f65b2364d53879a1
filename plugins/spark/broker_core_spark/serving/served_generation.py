"""Answers of the served generation, brought up to the catalogue's current version."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from broker_core import BoundedCache, ListingRequest, Selection, TasksByKey
from broker_core.change_log import ChangeLog
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core_spark.format import CanonicalQuestion
from broker_core_spark.serving.answer_verification import AnswerVerifier
from broker_core_spark.serving.changes.change_log_finder import ChangeLogFinder
from broker_core_spark.serving.changes.namespace_follower import NamespaceFollower
from broker_core_spark.serving.changes.overlay import Overlay
from broker_core_spark.serving.changes.table_change_log import TableChangeLog
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.pass_to_next_lister import PassToNextLister
from broker_core_spark.settings import SparkSettings

__all__ = ["CachedAnswer", "ServedAnswer", "ServedGeneration"]

#: Bytes that are spliced and hashed on the event loop, and names that are looked up there (some hundred microseconds).
_QUICK_BYTES: Final = 256 * 1024
_QUICK_NAMES: Final = 32
#: Bytes of all notes that the generation's own answer is the current one.
_UNCHANGED_BYTES: Final = 32 * 1024 * 1024
#: Answers spliced, and namespaces indexed, at a time: a small one does not wait for one large one.
_SPLICES: Final = 2
_INDEXES: Final = 2

#: Reasons for which an operator may allow a stale answer.
_MAY_BE_STALE: Final = frozenset({"unreachable", "gap", "overlay_limit"})


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A question's answer at version ``number``, other than the generation's own."""

    number: int
    selection: Selection


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """The topics and their hash, both of the state ``version``. ``stale`` says that it may not be the current one."""

    selection: Selection
    topics_hash: str
    version: str
    stale: bool = False


class ServedGeneration:
    """A verified generation, made and used on one event loop.

    ``logs`` finds the change log of its catalogue. ``answers`` keeps changed answers and is shared by successive
    generations. An answer takes the memory of its changed chunks: the others are the generation's, which is a mapped
    file. Chunks count as long as anybody has them: a slow client pins its answer after a newer one replaced it, and
    both share equal chunks. An answer that does not fit is not made, and its question passes to the next lister. That
    an answer is still the generation's own is noted apart, so that it takes no room from changed ones.
    """

    _serials = itertools.count(1)

    def __init__(
        self,
        generation: Generation,
        logs: ChangeLogFinder,
        answers: BoundedCache[bytes, CachedAnswer],
        settings: SparkSettings,
    ) -> None:
        self.generation = generation
        self.property_keys = generation.manifest.property_keys
        self._logs = logs
        self._answers = answers
        #: The version at which the generation's own answer was last the current one, by key.
        self._unchanged = BoundedCache[bytes, int](_UNCHANGED_BYTES)
        self._settings = settings
        self.verifier = AnswerVerifier(generation.id)
        self._right_at = datetime.now(UTC)
        #: The last look at the table that it is of, if somebody looks.
        self.table: TableChangeLog | None = None
        self._serial = next(ServedGeneration._serials).to_bytes(8)
        #: The followers of the namespaces that were asked for, by name.
        self.followers: dict[str, NamespaceFollower] = {}
        self._splicing = TasksByKey[Selection](_SPLICES)
        self._indexing = TasksByKey[None](_INDEXES)

    def follow(self, settings: SparkSettings) -> None:
        """Apply other live settings from now on."""
        self._settings = settings

    def built(self, when: datetime) -> None:
        """Record the time of publication, and drop earlier looks at its table. A future time counts as now."""
        self.table, self._right_at = None, min(when, datetime.now(UTC))

    def looked_at(self, table: TableChangeLog) -> None:
        """Serve the changes of a later look at its table."""
        self.table = table
        self._right_at = min(table.changes_of_table.looked, datetime.now(UTC))

    @property
    def age(self) -> float:
        """Seconds since the publication, or since the last look at its table."""
        return (datetime.now(UTC) - self._right_at).total_seconds()

    @property
    def follows(self) -> str:
        """The way in which its answers are kept right: ``changes``, ``max_age``, a catalogue declared ``static``, or
        ``nothing``.

        With ``nothing`` all its questions pass.
        """
        if self._logs.follows(self.generation.manifest, static=self._settings.serves_as_built):
            return "changes"
        if self._is_too_old or not self._settings.serves_as_built:
            return "nothing"
        if self.table is not None:
            return "changes"
        return "static" if self._settings.max_age is None else "max_age"

    @property
    def _is_too_old(self) -> bool:
        return self._settings.max_age is not None and self.age > self._settings.max_age

    async def _log(self) -> ChangeLog | None:
        """The change log of its catalogue; for a table, the changes of the last look.

        ``None`` if the generation may be served as it is. Raises :exc:`PassToNextLister`, also if it is too old.
        """
        log = await self._logs.find(self.generation.manifest, static=self._settings.serves_as_built)
        if log is not None:
            return log
        if self._is_too_old:
            raise PassToNextLister(
                "too_old",
                f"the generation, or the last look at its table, is {self.age:.0f} s old, and may be served for "
                f"{self._settings.max_age:.0f} s: build again, or look more often",
            )
        return self.table

    async def answer(self, request: ListingRequest, selecting: frozenset[str] | None = None) -> ServedAnswer:
        """The answer to a request, of the catalogue's state at some moment after the request came.

        ``selecting`` are the properties by which the other listers select topics. Raises :exc:`PassToNextLister`.
        """
        pattern, properties = request.pattern, request.properties
        if pattern is not None and not pattern.supported:
            raise PassToNextLister("unsupported_pattern", f"unsupported pattern: {pattern.reason}")
        namespace = str(request.namespace)
        if namespace not in self.generation.manifest.namespaces:
            raise PassToNextLister(
                "namespace", f"generation {self.generation.id[:12]} does not have {namespace}"
            )
        pairs = {key: properties[key] for key in self.property_keys if key in properties}
        text = None if pattern is None else pattern.text
        question = CanonicalQuestion.of_text(namespace, request.mode, text, pairs)
        for place in self.generation.unindexed(question):
            await self._indexing.result(place, partial(asyncio.to_thread, self.generation.index, [place]))
        answer = self.generation.lookup(question)
        if answer is None:
            raise PassToNextLister("not_registered", self._unknown(question))
        # This broker and the batch select by different properties: the next lister would answer otherwise.
        if selecting is not None and pairs.keys() != selecting & properties.keys():
            raise PassToNextLister(
                "property_keys",
                f"the broker selects by {_listed(selecting)}, the generation by {_listed(self.property_keys)}",
            )
        answer = await self.verifier.verify(question, answer, pattern)
        try:
            log = await self._log()
            if log is None:
                return ServedAnswer(answer.selection, answer.topics_hash, self.generation.id)
            follower = self._follower(request.namespace)
            overlay, version = await follower.current(log)
            stale = False
        except PassToNextLister as passed:
            known = self.followers.get(namespace)
            if passed.reason not in _MAY_BE_STALE or known is None or not self._may_be_stale(known):
                raise
            follower = known
            overlay, version, stale = follower.overlay, follower.version, True
        if not len(overlay):
            return ServedAnswer(answer.selection, answer.topics_hash, str(version), stale)
        # After a restart of the overlay the same version numbers mean other states.
        key = self._serial + follower.restarts.to_bytes(8) + question.key
        selection = await self._now(
            key, version.number, answer.selection, overlay, request.mode, pattern, pairs
        )
        return ServedAnswer(selection, selection.topics_hash, str(version), stale)

    def _unknown(self, question: CanonicalQuestion) -> str:
        selected = (
            f", by {_listed(dict(question.selector.properties))}" if question.selector.properties else ""
        )
        return (
            f"generation {self.generation.id[:12]} does not have this question (mode {question.mode.name}{selected}): "
            "it is no row of the patterns that were built"
        )

    def _may_be_stale(self, follower: NamespaceFollower) -> bool:
        age = asyncio.get_running_loop().time() - follower.current_at
        return self._settings.on_failure == "stale" and age <= self._settings.max_stale

    async def warm(self, namespaces: list[str]) -> None:
        """Read the changes of these namespaces before questions wait for them."""
        for name in namespaces:
            if name in self.generation.manifest.namespaces:
                with suppress(PassToNextLister):
                    log = await self._log()
                    if log is not None:
                        await self._follower(NamespaceName.parse(name)).current(log)

    def _follower(self, namespace: NamespaceName) -> NamespaceFollower:
        name = str(namespace)
        follower = self.followers.get(name)
        if follower is None:
            follower = self.followers[name] = NamespaceFollower(
                namespace,
                self.generation.manifest.version(name),
                property_keys=self.property_keys,
                limit=self._settings.overlay_limit,
                timeout=self._settings.source_timeout,
            )
        return follower

    async def _now(
        self,
        key: bytes,
        number: int,
        base: Selection,
        overlay: Overlay,
        mode: Mode,
        pattern: TopicsPattern | None,
        properties: Mapping[str, str],
    ) -> Selection:
        """The generation's answer with the changes that concern it, at version ``number``, made of the cached answer of
        ``key`` if there is one that is not newer.
        """
        kept = self._answers.get(key)
        if kept is None:
            after = self._unchanged.get(key)
            kept = CachedAnswer(-1 if after is None else after, base)
        before, after = (kept.selection, kept.number) if kept.number <= number else (base, -1)
        if after == number:
            return before
        match = partial(overlay.matching, mode, pattern, after=after)
        matching = match() if overlay.matching_is_quick(pattern) else await asyncio.to_thread(match)
        if not len(matching):
            self._keep(key, number, base, before)
            return before
        put = partial(overlay.put_into, before, matching, properties)

        async def splice() -> Selection:
            selection = await self._spliced(before, matching, put)
            self._keep(key, number, base, selection)
            return selection

        return await self._splicing.result((key, number), splice)

    async def _spliced(
        self, before: Selection, matching: Selection, put: Callable[[], Selection]
    ) -> Selection:
        """The result of ``put``, in claimed memory. Raises :exc:`PassToNextLister` if there is too little."""
        count = len(matching)
        size = before.changes_size(count) + matching.fields_size + 8 * count
        if not self._answers.claim(size):
            raise PassToNextLister("answers_limit", f"an answer of {size} bytes does not fit into answers")
        try:
            quick = size <= _QUICK_BYTES and count <= _QUICK_NAMES
            return put() if quick else await asyncio.to_thread(put)
        finally:
            self._answers.give_back(size)

    def _keep(self, key: bytes, number: int, base: Selection, selection: Selection) -> None:
        """Keep an answer unless a later version's is kept."""
        old = self._answers.get(key)
        if old is not None and old.number > number:
            return
        if selection is base:
            self._answers.pop(key)
            self._unchanged.put(key, number)
        else:
            size, parts = selection.remembered_bytes, selection.listing.memory
            self._answers.put(key, CachedAnswer(number, selection), size, parts=parts)

    def overlay_names(self) -> int:
        """The number of changed names in all namespaces."""
        return sum(len(follower.overlay) for follower in self.followers.values())

    async def close(self) -> None:
        """Cancel running work. The map ends when nobody has a part of the generation."""
        await self.verifier.close()
        await self._splicing.close()
        await self._indexing.close()


def _listed(keys: Iterable[str]) -> str:
    """Property keys in words."""
    return ", ".join(sorted(keys))[:200] or "no properties"
