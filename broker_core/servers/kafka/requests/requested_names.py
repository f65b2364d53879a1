"""The names in a request for a page: in order, from the start of the page, a part at a time.

A node of a cluster gets the bytes that the client sent, unless they are unusual.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, Final, Protocol

from broker_core.client import ClientError
from broker_core.client.kafka import LARGE_ANSWER
from broker_core.servers.kafka.cluster.cluster_front import ItemSize
from broker_core.servers.kafka.pages.answer_page import AnswerPage, Key, UnitPlace
from broker_core.servers.kafka.pages.kept_answers import AnswerAhead, KeptRequest
from broker_core.servers.kafka.pages.page_rows import Item, item_runs, items_of, message_of
from broker_core.servers.kafka.pages.page_shapes import PageShape
from broker_core.servers.kafka.pages.raw_units import RawUnits, kept_size, requested_shape
from broker_core.servers.kafka.requests.call import KafkaCall
from broker_core.servers.kafka.requests.page_parts import UnitRange, size_of, units_of
from broker_core.wire.kafka import ZERO_ID, Api, Fields, RawRows

__all__ = ["RequestedNames", "requested_names"]

#: The part of a page that is asked for first, of items with any number of units.
_FIRST: Final = 16
#: The most pages for which a node is asked at once, if the client goes on with a pass and the answer is small.
_PAGES: Final = 8


class RequestedNames(Protocol):
    """The names in a request. The type of a part is the implementation's."""

    def __len__(self) -> int: ...

    def has(self, first: str) -> bool:
        """Whether the request names an item with this first field of a cursor."""

    def parts(self) -> Iterator[Any]:
        """The parts from the start of the page on, each of as many items as fill the page if all exist."""

    def ahead(self, part: Any) -> AnswerAhead | None:
        """The answer to a part that came with the page before."""

    def keep(self, part: Any, fields: Fields, began: float, mark: int) -> AnswerAhead | None:
        """Keep the answer to a part, asked for at ``began`` after the change of ``mark``, if the next page goes on in
        it, and there is room.
        """

    def answered(self, units: int, size: int) -> None:
        """Note that the parts until now had ``units`` units, and ``size`` bytes if they stay bytes, else 0."""

    def filling(self) -> Any:
        """Fill the page with one unit for each item, and return the part on it."""

    async def body(self, part: Any) -> Fields:
        """The request for a part."""


async def requested_names(call: KafkaCall, api: Api, shape: PageShape, page: AnswerPage) -> RequestedNames:
    """The names in a request; none if it asks for all, or for topics by their ids."""
    rows = call.body[shape.requested[0].array] if shape.requested else None
    front = call.services.front
    kept = None if front is None or not rows else front.kept_request(call.asker, rows)
    if not rows:
        return _Decoded(call, shape, page, [])
    if shape.by_id and kept is None and await call.off_loop(len(rows), are_by_id, shape, rows):
        return _Decoded(call, shape, page, [])
    own = requested_shape(api, call.version)
    if isinstance(rows, RawRows) and own is not None:
        units = await units_of(call, own, rows) if kept is None else kept.units
        start = None if page.start is None else _own_place(shape, own, page.start)
        if units is not None and (start is None or units.before(start) is not None):
            # Whether an item of the request may have any number of units.
            is_open = units.is_open or len(own.answered) < len(shape.answered)
            if kept is None:
                _keep(call, page, rows, units, is_open=is_open)
            return _Bytes(call, api, shape, page, own, units, is_open=is_open, kept=kept)
    items = await call.off_loop(
        size_of(rows), items_of, shape, shape.requested, call.body, page, shape.requested_fields
    )
    return _Decoded(call, shape, page, items)


def are_by_id(shape: PageShape, rows: Any) -> bool:
    """Whether a request asks for some topic by its id."""
    if isinstance(rows, RawRows) and shape.by_id in rows.levels[0].fields:
        return not rows.are_zero(shape.by_id, len(ZERO_ID.bytes))
    return any(row[shape.by_id] != ZERO_ID for row in rows)


def _keep(call: KafkaCall, page: AnswerPage, rows: RawRows, units: RawUnits, *, is_open: bool) -> None:
    """Keep a large request of which the page has room for a part only, if there is memory."""
    front = call.services.front
    if front is None or not call.size or (len(units) <= page.limit and not is_open):
        return
    permit = call.room_to_keep(rows.nbytes + units.nbytes)
    if permit is not None:
        kept, now = KeptRequest(rows, permit, units), asyncio.get_running_loop().time()
        front.requests.keep(call.asker.connection, kept, now, front.requests.mark)


class _Decoded:
    def __init__(self, call: KafkaCall, shape: PageShape, page: AnswerPage, items: Sequence[Item]) -> None:
        self._call = call
        self._shape = shape
        self._page = page
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def has(self, first: str) -> bool:
        return first in {item.place.key[0] for item in self._items}

    def parts(self) -> Iterator[Sequence[Item]]:
        shape, start = self._shape, self._page.start
        fields = shape.requested_fields
        wanted = self._items
        if start is not None and fields is not None:
            begin = shape.order_of(start.key, start.topic_id, fields)
            wanted = [item for item in wanted if item.order >= begin[: self._known(item, fields)]]
        if fields is None or shape.sparse:
            return iter([wanted])
        units = [list(group) for _, group in groupby(wanted, key=self._unsplit(wanted))]
        most = self._page.limit + 1
        return iter([list(chain(*units[low : low + most])) for low in range(0, len(units), most)] or [[]])

    def _unsplit(self, items: Sequence[Item]) -> Callable[[Item], Any]:
        """A function that gives equal keys to the items that must be asked for at once.

        They are those below rows of one name, if there are several and each may have an error of its own: a node
        answers it as often as the row was asked for.
        """
        refused = self._shape.refused
        if refused is None or refused + 1 == len(self._shape.requested):
            return attrgetter("order")
        depth = refused + 1
        rows: dict[Key, set[int]] = {}
        for item in items:
            rows.setdefault(item.place.key[:depth], set()).add(id(item.path[refused]))
        return lambda item: item.place.key[:depth] if len(rows[item.place.key[:depth]]) > 1 else item.order

    def _known(self, item: Item, fields: Sequence[str]) -> int | None:
        """The number of fields of its order that an element names, if it asks for all that is in it; ``None`` for
        any other element.
        """
        if not item.is_row:
            return None
        shape = self._shape
        named = bool(shape.of_body) + sum(len(level.keys) for level in shape.requested[: len(item.path)])
        return len(shape.order_of(item.place.key, item.place.topic_id, fields[:named]))

    def ahead(self, part: Sequence[Item]) -> None:
        """``None``: no answer is kept."""

    def keep(self, part: Sequence[Item], fields: Fields, began: float, mark: int) -> None:
        """Keep nothing."""

    def answered(self, units: int, size: int) -> None:
        """Do nothing: the next part does not depend on it."""

    def filling(self) -> Sequence[Item]:
        taken: list[Any] = []
        self._page.fill(item_runs(self._shape, self._items, self._page.start, taken, taken))
        return [item for item, _ in taken]

    async def body(self, part: Sequence[Item]) -> Fields:
        taken = [(item, None) for item in part]
        return await self._call.off_loop(len(part), message_of, self._call.body, self._shape.requested, taken)


class _Bytes:
    def __init__(
        self,
        call: KafkaCall,
        api: Api,
        shape: PageShape,
        page: AnswerPage,
        own: PageShape,
        units: RawUnits,
        *,
        is_open: bool,
        kept: KeptRequest | None,
    ) -> None:
        self._is_open = is_open
        front = call.services.front
        #: Whether the client goes on with a pass, so that a question may be for several pages. What rules, masks and
        #: plugins decide is of this page alone.
        self._goes_on = (
            kept is not None and kept.has_room and page.start is not None and not call.may_hide_topics
        )
        self._kept = kept
        self._call = call
        self._api = api
        #: The number of items that were asked for until now, and the size of each.
        self._count = 0
        self._each = None if front is None else front.item_sizes.get(api)
        self._shape = shape
        self._own = own
        self._page = page
        self._units = units

    def __len__(self) -> int:
        return len(self._units)

    def has(self, first: str) -> bool:
        return self._units.has_first(first)

    def _low(self) -> int:
        start = self._page.start
        if start is None or self._shape.requested_fields is None:
            return 0
        return self._units.before(_own_place(self._shape, self._own, start), open_rows=True) or 0

    def parts(self) -> Iterator[tuple[int, int]]:
        low, end = self._low(), len(self._units)
        if self._is_whole:
            yield 0, end
            return
        known = self._known()
        if known is not None and known.part[0] <= low < known.part[1]:
            self._count += known.part[1] - known.part[0]
            yield known.part
            low = known.part[1]
        while low < end or not self._count:
            high = min(low + self._step(), end)
            self._count += high - low
            yield low, high
            if high == end:
                return
            low = high

    @property
    def _is_whole(self) -> bool:
        """Whether each page is asked for by all names: what they have is not in their order, or may be nothing."""
        return self._shape.requested_fields is None or self._shape.sparse

    def _step(self) -> int:
        """The items to ask for: as many as fill the page, if each has as much as the ones until now."""
        page, each = self._page, self._each
        most = page.limit + 1

        def filling(units: int) -> int:
            if not self._is_open:
                return most
            return most // _FIRST + 1 if each is None else min(int(units / each.units) + 1, most)

        step = filling(page.left)
        if each is None or not each.size or not self._goes_on:
            return step
        return max(step, min(filling(page.limit) * _PAGES, int(LARGE_ANSWER / each.size)))

    def answered(self, units: int, size: int) -> None:
        count = max(self._count, 1)
        self._each = ItemSize(max(units, 1) / count, size / count)
        front = self._call.services.front
        if front is not None:
            front.item_sizes[self._api] = self._each

    def _known(self) -> AnswerAhead | None:
        """The answer that came with the page before."""
        call, front = self._call, self._call.services.front
        found = None if front is None or not self._goes_on else front.aheads.get(call.asker.connection)
        if found is None or found.following != self._page.start or found.rows() is not self._units.rows:
            return None
        return found if found.question == self._question else None

    @cached_property
    def _question(self) -> Hashable:
        """The key of the question without its rows; ``None`` if the client's identity is not known."""
        call, front = self._call, self._call.services.front
        assert front is not None
        rest = {**call.body, self._own.answered[0].array: None}
        try:
            return front.question(call.asker, call.node.of_cluster, self._api, call.version, rest)
        except ClientError:
            return None

    def ahead(self, part: tuple[int, int]) -> AnswerAhead | None:
        known = self._known()
        return known if known is not None and known.part == part else None

    def keep(self, part: tuple[int, int], fields: Fields, began: float, mark: int) -> AnswerAhead | None:
        call, front, rows = self._call, self._call.services.front, fields.get(self._shape.answered[0].array)
        is_more = self._goes_on or (self._is_whole and call.size > 0 and not call.may_hide_topics)
        if front is None or not is_more or fields.get("error_code") or not isinstance(rows, RawRows):
            return None
        question, permit = self._question, call.room_to_keep(kept_size(fields))
        if question is None or permit is None:
            if self._kept is not None:
                self._kept.has_room = False  # what is not kept need not be asked for
            return None
        requested = weakref.ref(self._units.rows)
        kept = AnswerAhead(fields, permit, rows=requested, question=question, part=part)
        front.aheads.keep(call.asker.connection, kept, began, mark)
        return kept

    def filling(self) -> tuple[int, int]:
        low = self._low()
        run = UnitRange(self._units, low)
        self._page.fill([run])
        return low, low + run.count

    async def body(self, part: tuple[int, int]) -> Fields:
        array = self._own.answered[0].array
        return {**self._call.body, array: self._units.rows.cut(self._units.encoded(*part))}


def _own_place(shape: PageShape, own: PageShape, place: UnitPlace) -> UnitPlace:
    """A place by the fields of the request alone."""
    values = dict(zip(shape.fields, place.key, strict=True))
    return UnitPlace(tuple(values[each] for each in own.fields))
