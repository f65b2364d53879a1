"""Accepting a lister's answer: a checked selection within the request's permits.

Nothing that a plugin says is used unchecked: docs/explanation/promises.md#plugins-cannot-hurt-the-broker
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pyarrow as pa

from broker_core.concurrency import EACH_NAME, ON_LOOP
from broker_core.counted import counted
from broker_core.errors import InvalidListing
from broker_core.listing import Listing, Page, Selection, data_of
from broker_core.names import as_column
from broker_core.pipeline.listers.answer_store import AnswerStore
from broker_core.pipeline.listers.listing_details import ListingDetails
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.request.pipeline_options import PipelineOptions
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.pipeline.verification.bad_topics import bad_topics
from broker_core.pipeline.verification.verify_names import (
    VerifyFiltered,
    built,
    claim_sample,
    given_bytes,
    known_selection,
    own_hash,
)
from broker_core.pipeline.verification.verify_pages import check_order, check_page, surely_whole
from broker_core.plugin_api import AnswerKind, DefaultLister, TopicListingResult, key_of
from broker_core.plugins import Dispatcher, LoadedPlugin
from broker_core.tracing import stage

__all__ = ["Acceptance"]

#: Listings that were built of names which a plugin returned with a version: it is asked every time, and its names are
#: checked, ordered and encoded once for a version, and all that its answers depend on.
_KIND: Final = "kept"
#: A column of names costs this many times its bytes until it is a listing (measured: 5.0 in order, 7.5 in disorder).
_BUILD_FACTOR: Final = 8
#: The most bytes that are taken to look at encoded names, which is done in stretches.
_CHECKED_BYTES: Final = 4 * 1024 * 1024


class Acceptance:
    """Checks the answers of listers; one for a pipeline."""

    def __init__(
        self,
        lister: DefaultLister,
        dispatcher: Dispatcher,
        workers: Workers,
        store: AnswerStore,
        options: PipelineOptions,
        detailing: ListingDetails,
    ) -> None:
        self._lister = lister
        self._dispatcher = dispatcher
        self._workers = workers
        self._store = store
        self._options = options
        self._details = detailing

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
        sample = claim_sample(selection, pattern, VerifyFiltered(plugin.options.verify_filtered))
        if sample is None:
            return True
        matching = await self._workers.matching(request.asker, sample, pattern)
        if len(sample) == len(matching):
            return True
        self._dispatcher.claim_mismatch(plugin.name, len(selection))
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
        await progress.request.reserve(given_bytes(result.topics))
        # A plugin that gave its version before needs none here: it is the version of what it returned.
        told = plugin is None or plugin.name in progress.versions
        may_keep = not told and result.next is None and not self._options.is_long(request)
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
            await progress.request.reserve(given_bytes(result.topics) + _BUILD_FACTOR * names.nbytes)
            make = partial(built, request, names)
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
        await progress.request.reserve(2 * given)
        return await self._workers.call(progress.request.asker, partial(as_column, topics))


def _is_believed(plugin: LoadedPlugin) -> bool:
    """Whether the plugin's claims are accepted unchecked (``verify_filtered = "never"``)."""
    return plugin.options.verify_filtered == "never"
