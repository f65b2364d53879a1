"""The shrink guard: a listing that loses many topics at once becomes an error for a while.

A client that sees a topic vanish may delete its subscription, so a cluster that lists too little for a moment does harm
that cannot be undone. A listing of a store (a cluster, a plugin, the catalogue) is compared with its last one for the
same question and principal, before rules and masks: a right that is taken away is no loss here. Deletions that a store
reports one by one are intended.

For each question a digest and a number are remembered, in a bounded table, and in a file for the next start.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import structlog

from broker_core.change_log import CatalogVersion
from broker_core.counted import counted
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.names import NamespaceName, NamespacePatterns
from broker_core.settings import ShrinkGuardSettings, ShrinkLimits

__all__ = ["HELD", "HeldListing", "ShrinkGuard", "file_problem"]

#: The reason of the failure of a held listing.
HELD: Final = "shrink_guard"

#: Questions that are remembered, and namespaces whose loss was accepted.
_MOST: Final = 100_000
_MOST_ACCEPTED: Final = 10_000
#: Characters of a question that are shown.
_SHOWN: Final = 300
#: Seconds between two writes of the file.
_PACE: Final = 30.0
#: The beginning of the file, whatever its version.
_OURS: Final = "broker-core shrink guard "
_FIRST_LINE: Final = f"{_OURS}2"

_log = structlog.get_logger(__name__)

_Row: TypeAlias = tuple[str, int, float, float, tuple[CatalogVersion, ...]]


@dataclass(slots=True)
class _Remembered:
    """The number of topics of a question's last answer, the time of that, the time since which a smaller answer is
    held, and the versions of the change logs at the time of the last answer."""

    count: int
    at: float
    held_since: float = 0.0
    versions: tuple[CatalogVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldListing:
    """A listing that is held: since when, in Unix seconds, the number of topics before and now, and whose question."""

    namespace: NamespaceName
    question: str
    since: float
    until: float
    before: int
    now: int

    @property
    def missing(self) -> int:
        """The number of missing topics."""
        return self.before - self.now


class ShrinkGuard:
    """The guard of a broker. For its event loop; ``clock`` gives Unix seconds."""

    def __init__(self, settings: ShrinkGuardSettings, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._limits = [
            (
                NamespacePatterns([each.name]),
                settings.model_copy(update=each.model_dump(exclude={"name"}, exclude_none=True)),
            )
            for each in settings.namespaces
        ]
        self._clock = clock
        self._remembered: OrderedDict[str, _Remembered] = OrderedDict()
        self._held: dict[str, HeldListing] = {}
        self._accepted: OrderedDict[str, float] = OrderedDict()
        self._changed = False
        self._writing: asyncio.Task[None] | None = None
        #: Counts of listings: held, accepted by an operator, passed when the time was over.
        self.counts: Counter[str] = Counter({"held": 0, "accepted": 0, "passed": 0})

    # -- what stores list

    def limits_of(self, namespace: NamespaceName) -> ShrinkLimits:
        """The limits for a namespace, from the first table whose pattern matches."""
        text = str(namespace)
        return next((own for names, own in self._limits if names.matches(text)), self._settings)

    def versions_before(
        self, namespace: NamespaceName, question: str, count: int
    ) -> tuple[CatalogVersion, ...]:
        """The versions since which deletions decide on an answer of ``count`` topics; none if it needs no decision."""
        limits, last = self.limits_of(namespace), self._remembered.get(_digest(namespace, question))
        if last is None or not limits.enabled or not _is_lost(last.count, count, limits):
            return ()
        return last.versions

    def check(
        self,
        namespace: NamespaceName,
        question: str,
        count: int,
        *,
        deletions: int = 0,
        versions: Sequence[CatalogVersion] = (),
    ) -> None:
        """Check a store's answer of ``count`` topics to a question, whose text has the principal.

        ``deletions`` is the number of deletions since the last answer that the store reported one by one, and
        ``versions`` the states of change logs from which further ones are reported. Raises :exc:`ListingFailed` if it
        lost too much since the last answer.
        """
        limits = self.limits_of(namespace)
        if not limits.enabled:
            return
        key, now = _digest(namespace, question), self._clock()
        last = self._remembered.get(key)
        accepted = self._accepted.get(str(namespace), 0.0)
        if last is not None and last.at < accepted <= now < accepted + limits.hold:
            # Once for each question, and not for one that comes much later.
            del self._remembered[key]
            last = None
        if last is None or not _is_lost(last.count - deletions, count, limits):
            self._remember(key, count, now, limits, versions)
            return
        since = last.held_since or now
        if now >= since + limits.hold:
            _log.warning(
                "a held listing passes as it is: shrink_guard.hold is over",
                namespace=str(namespace),
                question=question[:_SHOWN],
                before=last.count,
                now=count,
            )
            self.counts["passed"] += 1
            self._remember(key, count, now, limits, versions)
            return
        if not last.held_since:
            last.held_since = now
            self._changed = True
            self.counts["held"] += 1
            _log.error(
                "the shrink guard holds a listing: many topics are missing at once",
                namespace=str(namespace),
                question=question[:_SHOWN],
                before=last.count,
                now=count,
            )
        held = HeldListing(namespace, question[:_SHOWN], since, since + limits.hold, last.count, count)
        if key in self._held or len(self._held) < _MOST_ACCEPTED:
            self._held[key] = held
        raise ListingFailed(
            f"The shrink guard holds this listing: {held.missing} of {counted(held.before, 'topic')} of "
            f"{namespace} are missing "
            f"at once; `broker-core shrink-guard accept {namespace}` lets it pass",
            cause=Cause.UPSTREAM,
            reason=HELD,
        )

    def intended(self, namespace: NamespaceName, question: str, count: int) -> None:
        """Note that the store reported each topic that came or went, so that ``count`` is the intended number."""
        limits = self.limits_of(namespace)
        if limits.enabled:
            self._remember(_digest(namespace, question), count, self._clock(), limits)

    def _remember(
        self,
        key: str,
        count: int,
        now: float,
        limits: ShrinkLimits,
        versions: Sequence[CatalogVersion] = (),
    ) -> None:
        self._held.pop(key, None)
        if count < limits.min_topics:  # so few topics are not guarded
            self._changed |= self._remembered.pop(key, None) is not None
            return
        last = self._remembered.get(key)
        if last is not None and last.count == count and not last.held_since:
            if last.versions != tuple(versions):
                last.versions = tuple(versions)
                self._changed = True
            self._remembered.move_to_end(key)
            return
        self._remembered[key] = _Remembered(count, now, versions=tuple(versions))
        self._remembered.move_to_end(key)
        self._changed = True
        if len(self._remembered) > _MOST:
            gone, _ = self._remembered.popitem(last=False)
            self._held.pop(gone, None)

    # -- operators

    def held(self) -> list[HeldListing]:
        """The listings held now, the oldest first."""
        return sorted(self._held.values(), key=lambda each: each.since)

    def accept(self, namespace: NamespaceName) -> int:
        """Accept the next listings of a namespace as intended; returns how many held questions that concerns."""
        self._accepted[str(namespace)] = self._clock()
        self._accepted.move_to_end(str(namespace))
        if len(self._accepted) > _MOST_ACCEPTED:
            self._accepted.popitem(last=False)
        mine = [key for key, each in self._held.items() if each.namespace == namespace]
        for key in mine:
            del self._held[key]
            self._remembered.pop(key, None)
        self._changed = True
        self.counts["accepted"] += len(mine)
        return len(mine)

    # -- the file

    async def start(self) -> None:
        """Read the file, and write it from now on. The next write replaces a damaged file, but no file of others."""
        path = self._settings.file
        if path is None:
            return
        problem = await asyncio.to_thread(file_problem, path)
        if problem is not None:  # not only once there is something to write
            _log.error("shrink_guard.file cannot be written", reason=problem)
        if await asyncio.to_thread(_is_foreign, path):
            return  # what another program has there is not replaced
        try:
            text = await asyncio.to_thread(path.read_text, encoding="utf-8")
            self._read(text)
        except FileNotFoundError:
            pass
        except (OSError, LookupError, ValueError, InvalidName) as error:
            _log.error(
                "shrink_guard.file cannot be read: no listing is compared with one before the start",
                reason=str(error),
            )
        self._writing = asyncio.get_running_loop().create_task(self._write_at_times(path))

    async def stop(self) -> None:
        """Write the remaining changes to the file."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
            assert self._settings.file is not None
            await self._write(self._settings.file)

    async def _write_at_times(self, path: Path) -> None:
        while True:
            await asyncio.sleep(_PACE)
            await self._write(path)

    async def _write(self, path: Path) -> None:
        if not self._changed:
            return
        self._changed = False
        # A snapshot; formatting a hundred thousand entries is work for a thread.
        remembered = [
            (key, each.count, each.at, each.held_since, each.versions)
            for key, each in self._remembered.items()
        ]
        accepted = list(self._accepted.items())
        try:
            await asyncio.to_thread(_replace, path, remembered, accepted)
        except OSError as error:
            self._changed = True
            _log.error("shrink_guard.file cannot be written", reason=str(error))

    def _read(self, text: str) -> None:
        first, *lines = text.splitlines() or [_FIRST_LINE]
        if first != _FIRST_LINE:
            raise ValueError(f"{first!r} is another version")
        accepted: dict[str, float] = {}
        remembered: dict[str, _Remembered] = {}
        for line in lines:
            key, *values = line.split(" ")
            if key == "accepted":
                accepted[values[0]] = float(values[1])
            else:
                count, at, held_since, *versions = values
                remembered[key] = _Remembered(
                    int(count), float(at), float(held_since), tuple(map(CatalogVersion.parse, versions))
                )
        # Nothing of a file that is damaged somewhere.
        self._accepted.update(accepted)
        self._remembered.update(remembered)


def _is_lost(before: int, now: int, limits: ShrinkLimits) -> bool:
    """Whether too many topics are missing."""
    return before >= limits.min_topics and before - now > limits.max_ratio * before


def _digest(namespace: NamespaceName, question: str) -> str:
    return hashlib.blake2b(
        f"{namespace}\0{question}".encode(errors="surrogatepass"), digest_size=12
    ).hexdigest()


def file_problem(path: Path) -> str | None:
    """The reason why nothing can be kept in a file, as far as it shows without writing; ``None`` if there is none."""
    folder = path.parent
    if not folder.is_dir():
        return f"{path}: there is no folder {folder}"
    if path.exists() and not path.is_file():
        return f"{path} is not a file"
    if not os.access(folder, os.W_OK | os.X_OK):  # the file itself is never written, but replaced
        return f"{path}: this user cannot make a file in {folder}"
    if _is_foreign(path):
        return f"{path} is another file: it does not begin with {_OURS!r}"
    return None


def _is_foreign(path: Path) -> bool:
    """Whether something is there that no guard has written. An unreadable file is not: reading it says why."""
    if not path.is_file():
        return path.exists()  # a pipe, say, from which nothing may ever come
    try:
        with path.open("rb") as file:
            head = file.read(len(_OURS))
    except OSError:
        return False
    return bool(head) and head != _OURS.encode()


def _replace(path: Path, remembered: Sequence[_Row], accepted: Sequence[tuple[str, float]]) -> None:
    """Replace a file atomically."""
    lines = [_FIRST_LINE, *(f"accepted {name} {at:.3f}" for name, at in accepted)]
    for key, count, at, held_since, versions in remembered:
        lines.append(" ".join([key, str(count), f"{at:.3f}", f"{held_since:.3f}", *map(str, versions)]))
    text = "\n".join([*lines, ""])
    new = path.with_name(f"{path.name}.new")
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise
