"""The watchers of one connection (PIP-145), by the numbers that its client gives them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from broker_core.access import Access, Asker
from broker_core.concurrency import ended_within
from broker_core.errors import Cause, ListingFailed, ResponseTooLarge, ServerError, TooManyRequests
from broker_core.listing import Selection, tagged_fields
from broker_core.memory import SMALL_ANSWER
from broker_core.metrics import Metrics
from broker_core.names import NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.pipeline import unfit_for_watches, unwatchable_pattern
from broker_core.plugin_api import ListingRequest
from broker_core.servers.connection import Closing, FrameSender, OutgoingAnswer
from broker_core.servers.pulsar.listing_job import FailingJob, ListingClient, read_listing_request
from broker_core.servers.pulsar.watch_refusals import WatchRefusals, watch_not_allowed
from broker_core.service import AnswerChange, ListingFeeds, Watcher
from broker_core.settings import LimitsSettings, WatchersSettings
from broker_core.wire.pulsar import (
    MAX_COMMAND_SIZE,
    OTHER_TAG,
    CommandGetTopicsOfNamespace,
    CommandWatchTopicList,
    FrameError,
    commands,
    watch_success_head,
    watch_unchanged,
    watch_update,
    watch_update_body,
)

__all__ = ["ClientWatchers", "WatchJob", "Watching"]

#: Watchers of one connection.
_MOST: Final = 1000
#: The most bytes of one update's topics; a larger change is sent in several.
_LARGEST: Final = 56 * 1024
#: Seconds after which a client without room is looked at again even without a signal.
_LOOK: Final = 0.1
_LOOK_AT_UNREAD: Final = 1.0
#: Seconds in which a client may leave updates unread while others have no room for theirs.
_PATIENCE: Final = 1.0

_Reply: TypeAlias = "bytes | WatchJob"


class UpdateRenderer:
    """Changes as UPDATE commands without the watcher's id."""

    def changed(self, change: AnswerChange) -> tuple[bytes, ...] | None:
        """The update of a change; ``None`` if it is too large for one."""
        added, removed = change.added, change.removed
        if added.fields_size + removed.fields_size > _LARGEST and len(added) + len(removed) > 1:
            return None
        gone = tagged_fields(removed, OTHER_TAG).read_all()
        return (watch_update_body(bytes(added.body()), bytes(gone), change.topics_hash),)

    def recreated(self, _names: Selection, _event_id: str) -> tuple[bytes, ...]:
        """No texts: a watcher has names, which have not changed."""
        return ()


_UPDATES: Final = UpdateRenderer()


@dataclass(slots=True)
class Watching:
    """The parts that the watchers of all clients of a server share."""

    feeds: ListingFeeds
    settings: WatchersSettings
    limits: LimitsSettings
    metrics: Metrics
    refusals: WatchRefusals = field(init=False)
    #: Called for each update that was sent.
    count_update: Callable[[], None] = field(init=False)
    count_watch: Callable[[str], None] = field(init=False)
    #: The number of open watchers.
    open: int = 0
    #: The last update that was written, and its frame for the watchers with one number: clients count from 0 or 1.
    _written: tuple[int, bytes, bytes] = (0, b"", b"")
    #: The connections that do not read their updates, the longest first, and since when.
    unread_since: dict[ClientWatchers, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        metrics = self.metrics
        self.refusals = WatchRefusals(metrics)
        self.count_update = metrics.counter("watch_updates", "Updates that were sent to watchers.")
        self.count_watch = metrics.counter(
            "watches",
            "Requests of clients to watch: opened, or reconciled (a watcher that asks whether it has all topics).",
            "outcome",
            known=("opened", "reconciled"),
        )
        metrics.gauge("watchers", "Topic list watchers that are open.", lambda: self.open)
        metrics.gauge(
            "followed_questions_failing",
            "Questions of watchers and event streams that have no answer now, so that their topics stay as they were.",
            lambda: self.feeds.failing,
        )

    def frame_of(self, watcher_id: int, update: bytes) -> bytes:
        """The frame of an update, which all watchers of a question get one after the other."""
        number, body, frame = self._written
        if body is not update or number != watcher_id:
            frame = watch_update(watcher_id, update)
            self._written = (watcher_id, update, frame)
        return frame

    def make_room(self, now: float) -> None:
        """Close the client that has left its updates unread for longest, if that is long: others have no room."""
        slowest = next(iter(self.unread_since), None)
        if slowest is not None and now - self.unread_since[slowest] >= _PATIENCE:
            del self.unread_since[slowest]
            slowest.close("slow", "peer does not read updates of its watcher while others wait for room")


class ClientWatchers:
    """The watchers of one connection; the :class:`~broker_core.service.Outlet` of each."""

    __slots__ = ("_client", "_room", "_sender", "_watchers", "_watching", "asker")

    def __init__(self, watching: Watching, client: ListingClient, asker: Asker, sender: FrameSender) -> None:
        self._watching = watching
        self._client = client
        self.asker = asker
        self._sender = sender
        self._watchers: dict[int, Watcher] = {}
        self._room: asyncio.Event | None = None

    def __len__(self) -> int:
        return len(self._watchers)

    # -- commands

    def watch(self, command: CommandWatchTopicList, now: float) -> _Reply:
        """The reply to a client that watches, or asks whether its watcher has all topics."""
        watching, client = self._watching, self._client
        known = self._watchers.get(command.watcher_id)
        topics_hash = command.topics_hash if command.HasField("topics_hash") else None
        if known is not None and known.namespace is not None:
            return self._reconcile(command.request_id, known, known.namespace, topics_hash, now)
        try:
            if known is not None:
                raise TooManyRequests("The watcher is being opened", reason="lookups", cause=Cause.QUEUE)
            if len(self._watchers) >= _MOST or watching.open >= watching.settings.most:
                raise TooManyRequests("Too many watchers are open", reason="lookups", cause=Cause.QUEUE)
            check_length(command.topics_pattern, client.pipeline.options.patterns.max_length)
            request, uncompiled = self._request(command, now)
        except ListingFailed as failure:
            watching.refusals.report(self.asker, command.namespace, failure)
            return commands.error(command.request_id, failure.code, failure.message)
        watcher = Watcher(watching.feeds, self, _UPDATES, command.watcher_id)
        self._watchers[command.watcher_id] = watcher
        watching.open += 1
        watching.count_watch("opened")
        return WatchJob(
            client,
            watching.feeds,
            self,
            watcher,
            command.request_id,
            request,
            topics_hash,
            uncompiled=uncompiled,
            is_new=True,
        )

    def _request(self, command: CommandWatchTopicList, now: float) -> tuple[ListingRequest, str | None]:
        question = CommandGetTopicsOfNamespace(
            request_id=command.request_id,
            namespace=command.namespace,
            topics_pattern=command.topics_pattern,
        )
        try:
            return read_listing_request(
                question, self.asker, self._client.pipeline, self._watching.limits, now
            )
        except ListingFailed as failure:
            raise bad_pattern(failure) from None

    def _reconcile(
        self,
        request_id: int,
        watcher: Watcher,
        namespace: NamespaceName,
        topics_hash: str | None,
        now: float,
    ) -> _Reply:
        """Reconcile a watcher; as at brokers, its namespace and pattern are the ones that it was opened with."""
        client = self._client
        self._watching.count_watch("reconciled")
        if topics_hash is not None and client.pipeline.passes_now(self.asker, namespace):
            current = watcher.up_to_date_now()
            if current is not None and current[1] == topics_hash:
                current[0](None)
                return watch_unchanged(request_id, watcher.watcher_id, topics_hash)
        deadline = now + client.pipeline.options.time_budget
        request = ListingRequest(namespace, asker=self.asker, deadline=deadline)
        feeds = self._watching.feeds
        return WatchJob(client, feeds, self, watcher, request_id, request, topics_hash, is_new=False)

    def close_watcher(self, watcher_id: int) -> None:
        """Close a watcher; a number without a watcher is no error."""
        found = self._watchers.pop(watcher_id, None)
        if found is not None:
            self._watching.open -= 1
            found.leave()

    def closed(self) -> None:
        """Close all watchers at the end of the connection."""
        self._watching.unread_since.pop(self, None)
        for watcher_id in list(self._watchers):
            self.close_watcher(watcher_id)

    # -- as the watchers see it

    def refused(
        self, watcher: Watcher, namespace: NamespaceName, failure: ListingFailed, *, ends: bool
    ) -> None:
        """Report that a watcher was not opened, or gets no answer; with ``ends`` it is closed."""
        if ends and self._watchers.get(watcher.watcher_id) is watcher:
            self.close_watcher(watcher.watcher_id)
        self._watching.refusals.report(self.asker, str(namespace), failure)

    def write(self, watcher_id: int, update: bytes) -> bool:
        watching, sender = self._watching, self._sender
        frame = watching.frame_of(watcher_id, update)
        limit = self._client.frame_limit
        if limit is not None and len(frame) > limit:
            self.close("frame_limit", "an update is larger than its client takes")
            return True
        if len(frame) > SMALL_ANSWER:
            sender.send(frame)
        else:
            is_sent = sender.push(frame)
            if not is_sent or sender.has_unread():
                self._note_waiting(len(frame))
            if not is_sent:
                return False
        watching.count_update()
        return True

    def _note_waiting(self, size: int) -> None:
        """Note that an update waits here: for the client to read, or for room that other clients have."""
        watching, now = self._watching, asyncio.get_running_loop().time()
        if self.has_unread:
            watching.unread_since.setdefault(self, now)
        elif not self._client.pipeline.permits.reserve.has_room(size):
            watching.make_room(now)

    @property
    def has_unread(self) -> bool:
        return self._sender.has_unread()

    async def room(self) -> None:
        if self._room is None:
            self._room = asyncio.Event()
        self._room.clear()
        await ended_within(_LOOK_AT_UNREAD if self.has_unread else _LOOK, self._room.wait())

    def has_room(self) -> None:
        """Note that the client has read all waiting updates."""
        self._watching.unread_since.pop(self, None)
        if self._room is not None:
            self._room.set()

    def close(self, reason: str, event: str) -> None:
        self._sender.send(Closing(reason, event))


class WatchJob(FailingJob):
    """Job of opening a watcher, or of reconciling its topics.

    ``topics_hash`` is the client's. ``uncompiled`` is a pattern that takes a thread to compile.
    """

    __slots__ = (
        "_client",
        "_feeds",
        "_has",
        "_is_new",
        "_request",
        "_request_id",
        "_topics_hash",
        "_uncompiled",
        "_was_answered",
        "_watcher",
        "_watches",
    )

    def __init__(
        self,
        client: ListingClient,
        feeds: ListingFeeds,
        watches: ClientWatchers,
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
        self._was_answered = False

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
        self._has, self._was_answered = selection, True
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

    def refuse(self, failure: ListingFailed) -> bytes:
        ends = self._is_new or failure.code is ServerError.NotAllowedError
        self._has = None
        self._watches.refused(self._watcher, self._request.namespace, failure, ends=ends)
        return commands.error(self._request_id, failure.code, failure.message)

    def release(self) -> None:
        if self._was_answered:
            self._was_answered = False
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
