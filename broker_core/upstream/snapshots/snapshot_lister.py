"""Listing from live snapshots of a cluster, by the rights of the asker.

A snapshot is of one view: of a principal, if the cluster is asked for principals, or of a role that lists for all of
them. Not every client may see what that role sees: whether a client may list a namespace is the cluster's own verdict,
which is kept no longer than a snapshot may be old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary, ref

import structlog

from broker_core.access import Asker
from broker_core.concurrency import TasksByKey, in_thread
from broker_core.errors import ListingFailed
from broker_core.listing import Listing
from broker_core.memory import BoundedCache
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api import (
    DefaultLister,
    DescribeRequest,
    ListerNotes,
    ListingRequest,
    TopicListingResult,
)
from broker_core.snapshots import result_of
from broker_core.upstream.snapshots.live_snapshots import LiveSnapshots
from broker_core.upstream.snapshots.namespace_watch import NamespaceWatches
from broker_core.upstream.snapshots.snapshot_log import SnapshotLog, ViewOfNamespace
from broker_core.upstream.snapshots.store_contract import TopicStore

__all__ = ["ONE_BROKER", "SnapshotLister"]

#: The warning about a listing of non-persistent topics.
ONE_BROKER: Final = (
    "non-persistent topics are known to the broker alone that has them loaded, and one broker was asked: "
    "upstream.admin_url asks all of them"
)
#: Hashes of given answers that are remembered: so many new ones, and as many older ones.
_MOST_GIVEN: Final = 50_000
#: Namespaces that are known to have been listed on one connection.
_MOST_LISTED: Final = 1000
#: Seconds between two tries to keep a followed listing current.
_AGAIN: Final = 1.0
#: Bytes of verdicts that are kept, and of each.
_VERDICTS: Final = 16 * 1024 * 1024
_VERDICT: Final = 400

_log = structlog.get_logger(__name__)

_Right: TypeAlias = tuple[str | None, str | None, NamespaceName]


class _GivenHashes:
    """Hashes of given answers, the last ones of all namespaces: some megabytes."""

    def __init__(self) -> None:
        self._last: set[int] = set()
        self._before: set[int] = set()

    def add(self, namespace: NamespaceName, topics_hash: str) -> None:
        mark = hash((namespace, topics_hash))
        if mark in self._last:
            return
        if len(self._last) >= _MOST_GIVEN:
            self._before, self._last = self._last, set()
        self._last.add(mark)

    def has(self, namespace: NamespaceName, topics_hash: str) -> bool:
        mark = hash((namespace, topics_hash))
        if mark in self._before:
            self.add(namespace, topics_hash)
        return mark in self._last


class SnapshotLister:
    """The default lister of a gateway with snapshots. ``direct`` is asked all questions that no snapshot answers: with
    properties or a principal on which the cluster's answers depend (``depends_on``), or with patterns that only the
    cluster evaluates.

    ``max_age`` in seconds: nothing older is given. ``is_partial`` says that a listing has the non-persistent topics of
    one broker only.
    """

    name: Final = "upstream"

    def __init__(
        self,
        store: TopicStore,
        snapshots: LiveSnapshots,
        direct: DefaultLister,
        *,
        max_age: float,
        depends_on: frozenset[str] = frozenset(),
        is_partial: bool = False,
    ) -> None:
        self.store: Final = store
        self.snapshots: Final = snapshots
        self._direct = direct
        self._max_age = max_age
        self.watches: Final = NamespaceWatches(store, snapshots, self._has_followers)
        self._listed_by = depends_on
        self._is_partial = is_partial
        self.depends_on: Final = direct.depends_on - ({"properties"} - depends_on)
        self._given = _GivenHashes()
        self._listed_on: WeakKeyDictionary[object, set[tuple[NamespaceName, Mode]]] = WeakKeyDictionary()
        self._verdicts: BoundedCache[_Right, float] = BoundedCache(_VERDICTS)
        self._questions: TasksByKey[None] = TasksByKey()
        self._followed: dict[tuple[ViewOfNamespace, Mode], tuple[asyncio.Task[None], set[object]]] = {}
        self._loop = asyncio.get_running_loop()
        #: The number of verdicts that the cluster was asked for.
        self.verdicts = 0

    # -- answering

    def list_now(
        self,
        request: ListingRequest,
        applied: TopicsPattern | None = None,  # noqa: ARG002  # a snapshot is of one moment for all patterns
    ) -> TopicListingResult | None:
        """The answer if a young enough snapshot for this client is in memory, else ``None``."""
        if self._is_direct(request):
            return None
        since = self._since(request)
        place = self._place(request.namespace, request.asker)
        if place is None:
            return None  # asking the long way says it
        if not self._is_allowed(_right(request.asker, request.namespace)):
            return None
        kept = self.snapshots.now(place, request.mode, since)
        return None if kept is None else kept.result

    def still_valid(
        self,
        request: ListingRequest,  # noqa: ARG002
        applied: TopicsPattern | None,  # noqa: ARG002
        listing: ref[Listing],  # noqa: ARG002
    ) -> Listing | None:
        """``None``: the earliest moment of an answer depends on the asking connection."""
        return None

    async def list_topics(self, request: ListingRequest) -> TopicListingResult:
        """The answer of a snapshot that is young enough, or of the cluster itself. Raises :exc:`ListingFailed`."""
        if self._is_direct(request):
            return await self._direct.list_topics(request)
        since = self._since(request)
        place = ViewOfNamespace(request.namespace, self.store.view_of(request.asker))
        await self.allow(request.asker, request.namespace)
        snapshot = await self.snapshots.current(place, request.mode, since)
        self._listed(request)
        if request.mode is not Mode.NON_PERSISTENT:
            self.watches.ensure(place)
        return result_of(snapshot.listing, snapshot)

    def place(self, namespace: NamespaceName, asker: Asker) -> ViewOfNamespace | None:
        """The client's view; ``None`` if it has none now, or if the cluster itself is asked for each principal."""
        return None if "principal" in self._listed_by else self._place(namespace, asker)

    def _place(self, namespace: NamespaceName, asker: Asker) -> ViewOfNamespace | None:
        try:
            return ViewOfNamespace(namespace, self.store.view_of(asker))
        except ListingFailed:
            return None

    def follow(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> Callable[[], None]:
        """Compare the client's snapshot with the cluster every ``max_age`` seconds at least, until the result is
        called.
        """
        place = self._place(namespace, asker)
        if place is None:
            return _nothing  # whoever follows asks, and hears of it
        key = place, mode
        task, followers = self._followed.get(key) or (None, set())
        if task is None:
            task = self._loop.create_task(self._keep_current(*key))
            self._followed[key] = task, followers
        follower = object()
        followers.add(follower)

        def leave() -> None:
            followers.discard(follower)
            if not followers and self._followed.get(key, (None, None))[0] is task:
                del self._followed[key]
                task.cancel()

        return leave

    def is_up_to_date(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> bool:
        """Whether the client's snapshot is young enough, and so is the cluster's verdict that it may have it."""
        place = self._place(namespace, asker)
        if place is None:
            return False
        age = self.snapshots.age(place, mode)
        return age is not None and age <= self._max_age and self._is_allowed(_right(asker, namespace))

    def period(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> float | None:
        """``max_age`` if no watch at the cluster reports all changes: a watch reports persistent topics only."""
        place = self._place(namespace, asker)
        is_watched = mode is Mode.PERSISTENT and place is not None and self.watches.is_open(place)
        return None if is_watched else self._max_age

    def _has_followers(self, place: ViewOfNamespace) -> bool:
        return any((place, mode) in self._followed for mode in Mode)

    async def _make_current(self, place: ViewOfNamespace, mode: Mode = Mode.ALL) -> None:
        """Get a young enough snapshot, and a watch of the cluster for its changes. Raises :exc:`ListingFailed`."""
        await self.snapshots.current(place, mode, self.snapshots.clock() - self._max_age)
        if mode is not Mode.NON_PERSISTENT:
            self.watches.ensure(place)

    async def _keep_current(self, place: ViewOfNamespace, mode: Mode) -> None:
        while True:
            try:
                await self._make_current(place, mode)
            except ListingFailed as failure:
                _log.debug("a followed namespace cannot be listed", reason=failure.message)
            age = self.snapshots.age(place, mode)
            await asyncio.sleep(_AGAIN if age is None else max(self._max_age - age, _AGAIN))

    def notes(self, request: ListingRequest) -> ListerNotes:
        """The age of the snapshot, its principal, and a warning if the listing lacks topics."""
        warnings = (ONE_BROKER,) if self._is_partial and request.mode is not Mode.PERSISTENT else ()
        if self._is_direct(request):
            return ListerNotes(None, warnings)
        place = self._place(request.namespace, request.asker)
        if place is None:  # its client has gone meanwhile
            return ListerNotes(None, warnings)
        age = self.snapshots.age(place, request.mode)
        audience = "role" if self.store.has_verdicts else "all" if place.view is None else "principal"
        how = "watched" if self.watches.is_open(place) else "compared"
        return ListerNotes(
            {"age_s": None if age is None else round(age, 3), "of": audience, "kept": how}, warnings
        )

    async def describe(self, request: DescribeRequest) -> None:  # noqa: ARG002  # the protocol's
        """``None``: a cluster gives nothing but names here."""
        return

    def _is_direct(self, request: ListingRequest) -> bool:
        """Whether the cluster itself has to be asked this question."""
        pattern = request.pattern
        return (
            (pattern is not None and not pattern.supported)
            or "principal" in self._listed_by
            or ("properties" in self._listed_by and bool(request.properties))
        )

    def _since(self, request: ListingRequest) -> float:
        """The earliest moment that the answer may be of.

        A client may have been at another gateway before, whose listing was newer, and would unsubscribe from topics
        that it had and this gateway does not have yet. So the first listing on a connection without a hash, and a
        listing for a hash that was not given here, are of a moment after the question.
        """
        now = self.snapshots.clock()
        if request.topics_hash is not None:
            is_new = not self._given.has(request.namespace, request.topics_hash)
        else:
            listed = self._listed_on.get(request.asker.connection)
            is_new = listed is None or (request.namespace, request.mode) not in listed
        return now if is_new else now - self._max_age

    def gave(self, namespace: NamespaceName, topics_hash: str) -> None:
        """Note that a client has an answer with this hash: it is no newer than this gateway's snapshot."""
        self._given.add(namespace, topics_hash)

    async def catch_up(self, request: ListingRequest) -> None:
        """Get a snapshot that is new enough for this client. Raises :exc:`ListingFailed`."""
        if not self._is_direct(request) and self.list_now(request) is None:
            await self.list_topics(request)

    def _listed(self, request: ListingRequest) -> None:
        """Note that later listings on this connection must be of no earlier moment."""
        if request.topics_hash is None:
            listed = self._listed_on.setdefault(request.asker.connection, set())
            if len(listed) >= _MOST_LISTED:
                listed.clear()
            listed.add((request.namespace, request.mode))

    # -- changes

    def log_of(self, asker: Asker) -> SnapshotLog:
        """The change log of the cluster's listing for this client. Raises :exc:`ListingFailed`."""

        def is_current(place: ViewOfNamespace) -> bool:
            since = self.snapshots.clock() - self._max_age
            return self.snapshots.now(place, Mode.ALL, since) is not None

        return SnapshotLog(
            self.snapshots.logs,
            self.snapshots.id,
            self.store.view_of(asker),
            current=self._make_current,
            is_current=is_current,
        )

    @property
    def log(self) -> SnapshotLog | None:
        """The change log of the cluster's listing for all clients; ``None`` if it depends on the asker."""
        return self.log_of(Asker()) if self.store.lists_for_all else None

    # -- the cluster's verdicts

    async def namespaces(self, asker: Asker) -> list[str]:
        """The namespaces in memory that this client may list, in order. Raises :exc:`ListingFailed`."""
        view, places = self.store.view_of(asker), self.snapshots.places()

        def names() -> list[str]:
            mine = {place.namespace for place in places if place.view == view}
            return sorted(str(each) for each in mine if self._is_allowed(_right(asker, each)))

        return await in_thread(view, names)

    def _is_allowed(self, right: _Right) -> bool:
        if not self.store.has_verdicts:
            return True
        given = self._verdicts.get(right)
        return given is not None and given >= self.snapshots.clock() - self._max_age

    async def allow(self, asker: Asker, namespace: NamespaceName) -> None:
        """Get the cluster's verdict that this client may list the namespace. Raises :exc:`ListingFailed`."""
        right = _right(asker, namespace)
        if self._is_allowed(right):
            return
        try:
            await self._questions.result(right, partial(self._ask, right, asker))
        except ListingFailed as failure:
            raise failure.copy() from failure.__cause__

    async def _ask(self, right: _Right, asker: Asker) -> None:
        began = self.snapshots.clock()
        self.verdicts += 1
        await self.store.allow(asker, right[2])
        self._verdicts.put(right, began, _VERDICT)

    async def close(self) -> None:
        """Cancel all questions, and drop all snapshots."""
        tasks = [task for task, _ in self._followed.values()]
        self._followed.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._questions.close(), return_exceptions=True)
        await self.watches.close()
        await self.snapshots.close()


def _nothing() -> None:
    """Do nothing: there is no watch to end."""


def _right(asker: Asker, namespace: NamespaceName) -> _Right:
    return asker.role, asker.original_principal, namespace
