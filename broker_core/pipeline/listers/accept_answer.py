"""Accepting a lister's answer: a checked selection within the request's permits, which the shrink guard lets pass.

Nothing that a plugin says is used unchecked: docs/explanation/promises.md#plugins-cannot-hurt-the-broker

The guard compares an answer with the plugin's last listing for the same question and principal. Deletions in a change
log are intended: in the plugin's own log, or else in any, for a plugin that serves what another store holds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import structlog

from broker_core.change_log import CatalogVersion, ChangeLog, Changes
from broker_core.concurrency import EACH_NAME, ON_LOOP
from broker_core.counted import counted
from broker_core.errors import InvalidListing, ListingFailed
from broker_core.guards import ShrinkGuard
from broker_core.listing import Listing, Page, Selection, data_of
from broker_core.names import Mode, NamespaceName, as_column
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.answer import bad_topics, known_selection
from broker_core.pipeline.listers.answer_store import AnswerStore
from broker_core.pipeline.listers.listing_details import ListingDetails
from broker_core.pipeline.listers.verify_answer_claims import check_order, check_page, surely_whole
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.request.unsupported_patterns import PipelineOptions
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.plugin_api import (
    AnswerKind,
    DefaultLister,
    ListingRequest,
    TopicListingResult,
    key_of,
    question_text,
)
from broker_core.plugins import Dispatcher, LoadedPlugin
from broker_core.tracing import stage

__all__ = [
    "Acceptance",
    "GuardedAnswers",
    "claim_sample",
    "given_bytes",
    "own_hash",
]

#: Listings that were built of names which a plugin returned with a version: it is asked every time, and its names are
#: checked, ordered and encoded once for a version, and all that its answers depend on.
_KIND: Final = "kept"
#: A column of names costs this many times its bytes until it is a listing (measured: 5.0 in order, 7.5 in disorder).
_BUILD_FACTOR: Final = 8
#: The most bytes that are taken to look at encoded names, which is done in stretches.
_CHECKED_BYTES: Final = 4 * 1024 * 1024


@dataclass(slots=True, eq=False)
class Acceptance:
    """Checks the answers of listers; one for a pipeline."""

    _lister: DefaultLister
    _dispatcher: Dispatcher
    _workers: Workers
    _store: AnswerStore
    _options: PipelineOptions
    _details: ListingDetails

    async def accept(
        self, progress: ListingInProgress, plugin: LoadedPlugin | None, result: TopicListingResult
    ) -> AcceptedAnswer:
        """Check what a plugin, or the default lister, returned. Raises :exc:`ListingFailed`."""
        with stage("verify"):
            return await self._accept(progress, plugin, result)

    async def _accept(
        self, progress: ListingInProgress, plugin: LoadedPlugin | None, result: TopicListingResult
    ) -> AcceptedAnswer:
        lister = self._lister.name if plugin is None else plugin.name
        request, pattern = progress.request, progress.pattern
        if result.kind is AnswerKind.UNCHANGED:
            if request.page is not None:
                raise bad_topics("answered unchanged to a question for a page, which no hash is of")
            if result.topics_hash is None or result.topics_hash != request.topics_hash:
                raise bad_topics("answered unchanged to a request without that hash")
            applied = (
                pattern
                if plugin is not None
                else request.pattern
                if self._options.patterns.evaluate
                else None
            )
            # The request's own hash: a subclass of str may be equal to text that it does not have.
            return AcceptedAnswer(lister, None, applied is not None, request.topics_hash)
        if result.next is not None and request.page is None:
            raise bad_topics("says where the next page begins (next=), and was asked for all topics")
        selection = known_selection(result, request)
        owned = 0
        if selection is not None:
            returned = len(selection)
            if not selection.is_checked:
                await self._look_at(progress, selection)
            if result.owned:
                owned = data_of(selection.listing).column_bytes
        else:
            selection, returned, owned = await self._build(progress, plugin, result)
        said = own_hash(result, selection, returned)
        if said is None and plugin is not None:
            said = selection.declared_hash
        believed = plugin is not None and _is_believed(plugin)
        version = result.version if plugin is None else progress.versions.get(plugin.name, result.version)
        accepted = AcceptedAnswer(
            lister, selection, False, said if believed else None, result.filtered, owned, version=version
        )
        if plugin is not None and not believed:
            accepted.declared_hash = said
        if request.page is not None:
            await self._accept_page(progress, request.page, result, accepted)
        if result.details is not None:
            accepted.details = await self._details.accept(progress, result.details, selection)
        if result.filtered:
            accepted.filtered = await self._is_filtered(progress, plugin, selection)
        return accepted

    async def _is_filtered(
        self, progress: ListingInProgress, plugin: LoadedPlugin | None, selection: Selection
    ) -> bool:
        """Whether a lister's claim that it filtered its topics is accepted."""
        request = progress.request
        if plugin is None:
            # Brokers upstream evaluate patterns themselves, with an engine that may know more than RE2.
            return request.pattern is not None and self._options.patterns.evaluate
        # A trusted lister is trusted for patterns that RE2 cannot evaluate, too. The claim of any other lister cannot
        # be verified for such a pattern, so the client filters.
        pattern = request.pattern if _is_believed(plugin) else progress.pattern
        if pattern is None:
            return False
        sample = claim_sample(selection, pattern, plugin.options.verify_filtered)
        if sample is None:
            return True
        matching = await self._workers.matching(request.asker, sample, pattern)
        if len(sample) == len(matching):
            return True
        self._dispatcher.false_claim(
            plugin.name, len(selection), "plugin says that it filtered, and did not; the server filters"
        )
        if progress.trace is not None:
            progress.trace.false_claims.append(
                f"plugin {plugin.name!r} says that it filtered (filtered=True), but not all of the "
                f"{counted(len(selection), 'topic')} that it listed match the pattern: the server filters them"
            )
        return False

    async def _look_at(self, progress: ListingInProgress, selection: Selection) -> None:
        """Check names that were encoded elsewhere."""
        held = progress.held
        await held.reserve(min(selection.fields_size, _CHECKED_BYTES))
        try:
            await self._workers.call(progress.request.asker, selection.check, EACH_NAME * len(selection))
        except (InvalidListing, pa.ArrowException) as error:
            raise bad_topics(f"returned a bad topic: {error}") from None

    async def _accept_page(
        self, progress: ListingInProgress, page: Page, result: TopicListingResult, accepted: AcceptedAnswer
    ) -> None:
        """Note whether the answer has all topics, and check it if it is a page."""
        selection = accepted.selection
        if selection is None:
            return
        accepted.next = result.next
        if result.next is None:
            accepted.whole = surely_whole(selection, page)
            return
        accepted.whole = False
        work = partial(check_page, selection, page, result.next)
        await self._workers.call(progress.request.asker, work, EACH_NAME * len(selection))

    async def _build(
        self, progress: ListingInProgress, plugin: LoadedPlugin | None, result: TopicListingResult
    ) -> tuple[Selection, int, int]:
        """The selection of the returned names, their number, and the bytes built for this request alone."""
        request = progress.request
        key = None
        await progress.request.reserve_bytes(given_bytes(result.topics))
        # A plugin that gave its version before needs none here: it is the version of what it returned.
        gave_version = plugin is None or plugin.name in progress.versions
        may_keep = not gave_version and result.next is None and not self._options.is_long(request)
        if result.version is not None and plugin is not None and may_keep:
            words = self._dispatcher.dependencies.of(plugin.name)
            # A filtered answer depends on the pattern, whatever the plugin says.
            key = key_of(request, words | {"pattern"} if result.filtered else words, plugin.name)
            kept: tuple[str | int, Listing, int] | None = self._store.get((_KIND, key))
            if kept is not None and kept[0] == result.version:
                return kept[1].all(), kept[2], 0
        try:
            names = await self._column(progress, result.topics)
            if result.next is not None:
                await self._workers.call(request.asker, partial(check_order, names), EACH_NAME * len(names))
            await progress.request.reserve_bytes(given_bytes(result.topics) + _BUILD_FACTOR * names.nbytes)
            make = partial(Listing.from_names, request.namespace, request.mode, names)
            listing = await self._workers.call(request.asker, make, EACH_NAME * len(names))
        except (InvalidListing, pa.ArrowException) as error:
            raise bad_topics(f"returned a bad topic: {error}") from None
        if key is not None and result.version is not None and surely_whole(listing.all(), request.page):
            value = (result.version, listing, len(names))
            if self._store.put((_KIND, key), request.namespace, value, listing, key.text):
                return listing.all(), len(names), 0  # charged to its keeper
        return listing.all(), len(names), data_of(listing).column_bytes

    async def _column(self, progress: ListingInProgress, topics: Any) -> pa.LargeStringArray:
        """The names that a plugin returned as a column, made once there is room for it."""
        if EACH_NAME * len(topics) <= ON_LOOP:
            return as_column(topics)
        given = given_bytes(topics)
        await progress.request.reserve_bytes(2 * given)
        return await self._workers.call(progress.request.asker, partial(as_column, topics))


def _is_believed(plugin: LoadedPlugin) -> bool:
    """Whether the plugin's claims are accepted unchecked (``verify_filtered = "never"``)."""
    return plugin.options.verify_filtered == "never"


#: Up to so many names a sample is all of them; of more, so many evenly spaced ones.
SAMPLE_ALL = 10_000
SAMPLE_OF_MORE = 1_000

_HASH = re.compile("[0-9a-f]{8}")
#: Names of a list that are looked at to know about how much memory all of it takes.
_SIZED = 64


def given_bytes(topics: Any) -> int:
    """The approximate bytes of the names as a lister returned them: a sequence of strings or an Arrow column."""
    if isinstance(topics, pa.Array | pa.ChunkedArray):
        return int(topics.nbytes)
    if not len(topics):
        return 0
    step = max(1, len(topics) // _SIZED)
    sample = topics[::step]
    # An object that is no string is refused later; its own ``__sizeof__`` is not called.
    total = sum(sys.getsizeof(name) for name in sample if type(name) is str)
    return len(topics) * (8 + total // len(sample))


def own_hash(result: TopicListingResult, selection: Selection, returned: int) -> str | None:
    """The lister's hash if it should be that of exactly these topics (none collapsed, none hidden)."""
    given = result.topics_hash
    if given is None:
        return None
    given = str.__str__(given)
    if _HASH.fullmatch(given) is None:
        raise bad_topics(f"returned a topics hash that is none: {given[:40]!r} (8 lower-case hex digits)")
    return given if len(selection) == returned else None


def claim_sample(selection: Selection, pattern: TopicsPattern, policy: str) -> Selection | None:
    """The topics that must all match if the lister's ``filtered=True`` is right; ``None``: the policy checks none."""
    if policy == "never" or selection.pattern == pattern.text:
        return None
    if policy == "always" or len(selection) <= SAMPLE_ALL:
        return selection.as_claim()
    return selection.sampled(SAMPLE_OF_MORE)


_log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class GuardedAnswers:
    """Checks the answers of plugins; one for a pipeline. ``logs`` gives all change logs, ``but`` is the plugin whose
    answers are checked elsewhere.
    """

    _guard: ShrinkGuard
    _dispatcher: Dispatcher
    _logs: Callable[[], Sequence[ChangeLog]]
    _but: str | None = None

    def versions(self, namespace: NamespaceName) -> tuple[CatalogVersion, ...]:
        """The states of the change logs, to be read before a question is asked: all later entries count."""
        if not self._guard.limits_of(namespace).enabled:
            return ()
        found: list[CatalogVersion] = []
        for log in self._logs():
            try:
                version = log.version_now(namespace)
            except ListingFailed:
                continue
            except Exception as error:  # noqa: BLE001  # a plugin's
                _log.warning("a change log failed", log=log.name, reason=str(error))
                continue
            if version is not None:
                found.append(version)
        return tuple(found)

    async def check(
        self, request: ListingRequest, accepted: AcceptedAnswer, versions: Sequence[CatalogVersion]
    ) -> None:
        """Raise :exc:`ListingFailed` if a whole answer of a plugin lost too many topics at once."""
        namespace, selection = request.namespace, accepted.selection
        if selection is None or not accepted.whole or accepted.lister == self._but:
            return
        if not self._guard.limits_of(namespace).enabled:
            return
        words = self._dispatcher.dependencies.of(accepted.lister)
        text = question_text(request, words | {"pattern"} if accepted.claimed else words)
        question, count = f"{text}, by {accepted.lister}", len(selection)
        deletions = 0
        for since in self._guard.versions_before(namespace, question, count):
            deletions = max(deletions, await self._deletions(accepted.lister, namespace, request.mode, since))
        self._guard.check(namespace, question, count, deletions=deletions, versions=versions)

    async def _deletions(
        self, plugin: str, namespace: NamespaceName, mode: Mode, since: CatalogVersion
    ) -> int:
        """The number of names that the change log of a version deleted after it; 0 if it does not know."""
        logs = self._logs()
        own = [log for log in logs if log.name == plugin]
        for log in own or logs:
            try:
                if await log.catalog_id() != since.catalog_id:
                    continue
                found = await log.changes(namespace, since)
            except ListingFailed:
                continue
            if isinstance(found, Changes):
                return sum(
                    len(change.listed_before.without(change.listed_after))
                    for change in found
                    if mode.lists(change.name.domain)
                )
        return 0
