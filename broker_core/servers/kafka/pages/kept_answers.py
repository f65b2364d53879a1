"""Cached answers and requests for the later pages of a pass, bounded by age, number and permits."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from broker_core.memory import Permit
from broker_core.upstream.kafka import ClusterTopics
from broker_core.wire.kafka import Fields, RawRows

__all__ = ["AnswerAhead", "KeptAnswers", "KeptRequest", "WholeAnswer"]

#: Answers that are kept at the most; the one that was used last goes last.
_MOST: Final = 64


@dataclass(slots=True, eq=False)
class WholeAnswer:
    """An answer without pages; its rows as units, and the topics as they were before it, once they are known."""

    fields: Fields
    permit: Permit = field(repr=False)
    units: Any = field(default=None, repr=False)
    topics: ClusterTopics | None = field(default=None, repr=False)


@dataclass(slots=True, eq=False)
class AnswerAhead(WholeAnswer):
    """An answer about more of a client's request than a page has room for: about the units from the first to the second
    of ``part``, of the names in ``rows``. ``question`` is all that was asked besides the rows.
    """

    rows: weakref.ref[RawRows] = field(kw_only=True, repr=False)
    question: Hashable = field(kw_only=True, repr=False)
    part: tuple[int, int] = field(kw_only=True)
    #: The start of the page behind the last one that was made of it. No other page is made of it: one that is asked
    #: for again is asked of the node again.
    following: object = field(default=None, repr=False)


@dataclass(slots=True, eq=False)
class KeptRequest:
    """A client's last large request, as rows and as units: the next page's has the same bytes."""

    rows: RawRows
    permit: Permit = field(repr=False)
    units: Any = field(repr=False)
    #: A weak reference to the table of topics that the names of it were looked for in, and its rows.
    found: Any = field(default=None, repr=False)
    #: Whether there was room for answers about its next pages.
    has_room: bool = True


class _Kept(Protocol):
    permit: Permit


_Any = TypeVar("_Any", bound=_Kept)


class KeptAnswers(Generic[_Any]):
    """The newest answers by any key, for ``max_age`` seconds from the moment of the question."""

    def __init__(self, max_age: float) -> None:
        self.max_age = max_age
        #: Each answer with the timer that drops it; one dropped before has its timer cancelled, which refers to it.
        self._kept: dict[Hashable, tuple[_Any, asyncio.TimerHandle]] = {}
        #: A mark that differs after each change: an answer that was asked for before a change is not kept after it.
        self.mark = 0

    def get(self, key: Hashable) -> _Any | None:
        """The answer of a key."""
        found = self._kept.pop(key, None)
        if found is None:
            return None
        self._kept[key] = found
        return found[0]

    def keep(self, key: Hashable, answer: _Any, began: float, mark: int) -> None:
        """Keep an answer that was asked for at ``began``, in loop time, after the change of ``mark``."""
        if mark != self.mark:
            answer.permit.release()
            return
        self._let_go(key)
        end = asyncio.get_running_loop().call_at(began + self.max_age, self._let_go, key)
        self._kept[key] = answer, end
        while len(self._kept) > _MOST:
            self._let_go(next(iter(self._kept)))

    def clear(self) -> None:
        """Drop all answers, also the ones under way: something was changed, or memory is short."""
        self.mark += 1
        for key in list(self._kept):
            self._let_go(key)

    def _let_go(self, key: Hashable) -> None:
        if (kept := self._kept.pop(key, None)) is not None:
            answer, end = kept
            end.cancel()
            answer.permit.release()
