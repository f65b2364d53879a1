"""The change log of a cluster: topics that came and went between its live snapshots.

A cluster has no history. So a log of a place begins with the first question for its version, has the changes from one
snapshot to the next since then, and ends with the process: its id is the snapshots', which is random. If a step is
unknown (the snapshot was dropped, too many names changed at once), it begins again, and a question for the changes
since an earlier version gets a :class:`~broker_core.change_log.Gap`: never too few changes.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import uuid
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from broker_core.change_log import CatalogVersion, Change, Changes, Gap, ListedNames, Operation
from broker_core.concurrency import in_thread
from broker_core.listing import Listing, topic_names
from broker_core.names import NOTHING, NamespaceName, TopicName
from broker_core.upstream.snapshots.store_contract import SHARED, View

__all__ = ["MOST_STEP", "MoveLogs", "SnapshotLog", "ViewOfNamespace"]

#: The most changed names that are kept of one step, and of all steps, and the most places with a log.
MOST_STEP: Final = 10_000
_MOST_NAMES: Final = 50_000
_MOST_PLACES: Final = 1000
#: Changed names that are looked at on the event loop.
_FEW: Final = 20


class ViewOfNamespace(NamedTuple):
    """A namespace as one view lists it."""

    namespace: NamespaceName
    view: View


_Step: TypeAlias = tuple[int, tuple[Change, ...]]


class _MoveLog:
    """The changes of one place after version ``floor``."""

    __slots__ = ("floor", "lock", "number", "steps")

    def __init__(self, number: int) -> None:
        self.steps: deque[_Step] = deque()
        self.lock = asyncio.Lock()
        self.restart(number)

    def restart(self, number: int) -> None:
        self.floor = self.number = number
        self.steps.clear()


class MoveLogs:
    """The logs of the places that somebody follows; for one event loop. No two of their versions have one number."""

    def __init__(self) -> None:
        self._logs: OrderedDict[ViewOfNamespace, _MoveLog] = OrderedDict()
        self._numbers = itertools.count(1)
        self._names = 0

    def follows(self, place: ViewOfNamespace) -> bool:
        """Whether anybody wants the changes of a place."""
        return place in self._logs

    def open(self, place: ViewOfNamespace) -> _MoveLog:
        """The log of a place, which begins now if there is none."""
        log = self._logs.get(place)
        if log is None:
            log = self._logs[place] = _MoveLog(next(self._numbers))
            if len(self._logs) > _MOST_PLACES:
                _, gone = self._logs.popitem(last=False)
                self._names -= sum(len(changes) for _, changes in gone.steps)
        self._logs.move_to_end(place)
        return log

    def restart(self, place: ViewOfNamespace) -> None:
        """Begin the log of a place again: a step is unknown."""
        log = self._logs.get(place)
        if log is not None:
            self._names -= sum(len(changes) for _, changes in log.steps)
            log.restart(next(self._numbers))

    async def moved(
        self, place: ViewOfNamespace, listing: Listing, removed: Sequence[str], added: Sequence[str]
    ) -> None:
        """Note that these names went and came, and that the topics of one domain of a place are ``listing`` now. Call
        it once listings show them, so that a version never has a change that a later listing lacks.
        """
        log = self._logs.get(place)
        if log is None:
            return
        if len(removed) + len(added) > MOST_STEP:
            self.restart(place)
            return
        try:
            async with log.lock:  # in the order of the numbers
                number = next(self._numbers)
                work = partial(_changes, number, listing, removed, added)
                is_quick = len(removed) + len(added) <= _FEW
                changes = work() if is_quick else await in_thread(place.namespace, work)
        except BaseException:
            self.restart(place)
            raise
        if number < log.floor or self._logs.get(place) is not log:
            return  # it began again meanwhile
        log.steps.append((number, changes))
        log.number = number
        self._names += len(changes)
        while self._names > _MOST_NAMES:
            oldest = next(each for each in self._logs.values() if each.steps)
            oldest.floor, dropped = oldest.steps.popleft()
            self._names -= len(dropped)


class SnapshotLog:
    """The change log of one view of a cluster's namespaces. For one event loop.

    ``current`` reads the snapshots of a place anew if they are too old; ``is_current`` says whether they are young
    enough. A version is no older than a listing may be.
    """

    def __init__(
        self,
        logs: MoveLogs,
        log_id: str,
        view: View,
        *,
        current: Callable[[ViewOfNamespace], Awaitable[None]],
        is_current: Callable[[ViewOfNamespace], bool],
        name: str = "upstream",
    ) -> None:
        self.name: Final = name
        self._logs = logs
        self._view = view
        self._current = current
        self._is_current = is_current
        #: Versions of one principal say nothing about the topics of another one.
        self._id = log_id if view in (None, SHARED) else _id_of(log_id, view)

    async def catalog_id(self) -> str:
        """The random id of this server's snapshots since its start."""
        return self._id

    def version_now(self, namespace: NamespaceName) -> CatalogVersion | None:
        """The state of a namespace, if its snapshots are in memory and young enough."""
        place = ViewOfNamespace(namespace, self._view)
        return self._version(self._logs.open(place)) if self._is_current(place) else None

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace, no older than a listing may be. Raises :exc:`ListingFailed`."""
        place = ViewOfNamespace(namespace, self._view)
        await self._current(place)
        return self._version(self._logs.open(place))

    async def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        """The changes after a version. Raises :exc:`ListingFailed`."""
        version = await self.version(namespace)
        log = self._logs.open(ViewOfNamespace(namespace, self._view))
        if since.catalog_id != self._id:
            return Gap(since, version, "that version is of another server or client, or of before the start")
        if not log.floor <= since.number <= log.number:
            return Gap(since, version, "what changed since that version is not known any more")
        steps = [changes for number, changes in log.steps if number > since.number]
        return Changes(since, self._version(log), tuple(itertools.chain.from_iterable(steps)))

    def _version(self, log: _MoveLog) -> CatalogVersion:
        return CatalogVersion(self._id, log.number)


def _changes(
    number: int, listing: Listing, removed: Sequence[str], added: Sequence[str]
) -> tuple[Change, ...]:
    """Names that went and came as changes of topics: names of one topic are one change."""
    made: list[Change] = []
    gone, come = _by_topic(removed), _by_topic(added)
    now = datetime.now(UTC)
    for name in sorted(gone.keys() | come.keys()):
        after = _listed(topic_names(listing.all(), str(name)).to_pylist())
        lost, new = gone.get(name, NOTHING), come.get(name, NOTHING)
        before = after.without(new) | lost
        operation = Operation.UPDATE
        if not before or not after:
            operation = Operation.CREATE if after else Operation.DELETE
        # A cluster gives no ids.
        topic_id = uuid.uuid5(uuid.NAMESPACE_URL, str(name))
        made.append(Change(number, operation, name, topic_id, before, after, {}, {}, now))
    return tuple(made)


def _by_topic(names: Sequence[str]) -> dict[TopicName, ListedNames]:
    found: dict[TopicName, list[int]] = {}
    for text in names:
        name = TopicName.parse(text)
        found.setdefault(name.partitioned_name, []).append(name.partition)
    return {name: _of(indices) for name, indices in found.items()}


def _listed(names: Sequence[str]) -> ListedNames:
    return _of([TopicName.parse(name).partition for name in names])


def _of(indices: Sequence[int]) -> ListedNames:
    made = ListedNames.of_indices(index for index in indices if index >= 0)
    return ListedNames(plain=-1 in indices, ranges=made.ranges)


def _id_of(log_id: str, view: View) -> str:
    """An id of the right length, from the log's id and the view."""
    text = f"{log_id} {view}".encode(errors="surrogatepass")
    return base64.urlsafe_b64encode(hashlib.blake2b(text, digest_size=16).digest()).decode().rstrip("=")
