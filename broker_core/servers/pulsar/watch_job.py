"""A WATCH_TOPIC_LIST of a client: a new watcher, or a look whether one has all topics (reconciliation)."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from broker_core.access import Access
from broker_core.errors import Cause, ListingFailed, ResponseTooLarge, ServerError, TooManyRequests
from broker_core.listing import Selection, tagged_fields
from broker_core.memory import PermitBudget
from broker_core.names import NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.pipeline import unfit_for_watches, unwatchable_pattern
from broker_core.plugin_api import ListingRequest
from broker_core.servers.connection import OutgoingAnswer
from broker_core.servers.pulsar.listing_job import TOO_MANY_LOOKUPS, ListingClient
from broker_core.servers.pulsar.watch_refusals import watch_not_allowed
from broker_core.service import ListingFeeds, Watcher
from broker_core.wire.pulsar import MAX_COMMAND_SIZE, OTHER_TAG, FrameError, commands, watch_success_head

__all__ = ["WatchJob"]


class _Watches(Protocol):
    """The watchers of the connection."""

    def refused(
        self, watcher: Watcher, namespace: NamespaceName, failure: ListingFailed, *, ends: bool
    ) -> None:
        """A watcher was not opened, or gets no answer; ``ends`` says that there is none any more."""


class WatchJob:
    """``topics_hash`` is the client's. ``uncompiled`` is a pattern that takes a thread to compile."""

    __slots__ = (
        "_client",
        "_feeds",
        "_has",
        "_is_new",
        "_request",
        "_request_id",
        "_topics_hash",
        "_uncompiled",
        "_was_asked",
        "_watcher",
        "_watches",
    )

    def __init__(
        self,
        client: ListingClient,
        feeds: ListingFeeds,
        watches: _Watches,
        watcher: Watcher,
        request_id: int,
        request: ListingRequest,
        topics_hash: str | None,
        *,
        uncompiled: str | None = None,
        is_new: bool,
    ) -> None:
        self._client = client
        self._feeds = feeds
        self._watches = watches
        self._watcher = watcher
        self._request_id = request_id
        self._request = request
        self._topics_hash = topics_hash
        self._uncompiled = uncompiled
        self._is_new = is_new
        #: The client's topics once it has read the answer.
        self._has: Selection | None = None
        self._was_asked = False

    def small_answer(self) -> None:
        """``None``: no answer is known before it is asked for."""

    async def answer(self) -> OutgoingAnswer:
        request, pipeline = self._request, self._client.pipeline
        if pipeline.has_guards:
            access = Access("list", request.namespace, None, request.asker)
            await pipeline.authorize(access, request.deadline)
        if self._is_new:
            request = await self._with_pattern(request)
        unfit = await unfit_for_watches(pipeline, request.namespace, request.asker)
        if unfit is not None:
            raise watch_not_allowed(unfit, "properties")
        if self._is_new:
            selection, topics_hash = await self._watcher.open(replace(request, topics_hash=self._topics_hash))
            is_known = topics_hash == self._topics_hash
        else:
            selection, topics_hash, up_to_date = await self._watcher.reconcile()
            is_known = up_to_date and topics_hash == self._topics_hash
        self._has, self._was_asked = selection, True
        shown = selection.range(0, 0) if is_known else selection
        head, tail = self._ends(shown, topics_hash)
        return OutgoingAnswer(head, tagged_fields(shown, OTHER_TAG), tail, request.deadline)

    async def _with_pattern(self, request: ListingRequest) -> ListingRequest:
        """The request with its pattern, which can be watched. Raises :exc:`ListingFailed`."""
        pipeline = self._client.pipeline
        unwatchable = unwatchable_pattern(pipeline, request.pattern)
        if unwatchable is None and self._uncompiled is not None:
            check_length(self._uncompiled, pipeline.options.patterns.max_length)
            try:
                request = await pipeline.with_pattern(request, self._uncompiled)
            except ListingFailed as failure:
                raise bad_pattern(failure) from None
            unwatchable = unwatchable_pattern(pipeline, request.pattern)
        if unwatchable is not None:
            raise watch_not_allowed(unwatchable, "pattern")
        return request

    def _ends(self, shown: Selection, topics_hash: str) -> tuple[bytes, bytes]:
        size = shown.fields_size
        try:
            head, tail = watch_success_head(self._request_id, self._watcher.watcher_id, size, topics_hash)
        except FrameError:
            raise ResponseTooLarge(size, MAX_COMMAND_SIZE, len(shown)) from None
        size += len(head) + len(tail)
        limit = self._client.frame_limit
        if limit is not None and size > limit:
            raise ResponseTooLarge(size, limit, len(shown))
        return head, tail

    def refusal(self, error: Exception) -> bytes | None:
        return self._refuse(error) if isinstance(error, ListingFailed) else None

    def no_place(self) -> bytes:
        return self._refuse(TooManyRequests(TOO_MANY_LOOKUPS, reason="lookups", cause=Cause.QUEUE))

    def _refuse(self, failure: ListingFailed) -> bytes:
        ends = self._is_new or failure.code is ServerError.NotAllowedError
        self._has = None
        self._watches.refused(self._watcher, self._request.namespace, failure, ends=ends)
        return commands.error(self._request_id, failure.code, failure.message)

    def holds(self, _budget: PermitBudget) -> bool:
        return False

    def release(self) -> None:
        if self._was_asked:
            self._was_asked = False
            self._watcher.opened(self._has)


def check_length(text: str, most: int) -> None:
    """Refuse a pattern that is too long to be watched: in UTF-16 units without its scheme, as brokers measure."""
    if len(text) * 2 <= most:
        return
    try:
        text = TopicsPattern.without_scheme(text)
    except ListingFailed:
        return  # it is refused for that
    if len(text.encode("utf-16-le", "surrogatepass")) // 2 > most:
        raise watch_not_allowed(f"Pattern longer than maximum: {most}", "pattern")


def bad_pattern(failure: ListingFailed) -> ListingFailed:
    """The brokers' error for a malformed pattern."""
    if failure.cause is not Cause.PATTERN:
        return failure
    return ListingFailed(
        failure.message,
        cause=Cause.PATTERN,
        code=ServerError.InvalidTopicName,
        reason=failure.reason,
    )
