"""The names in a request for a page: in order, from the start of the page, a part at a time.

A node of a cluster gets the bytes that the client sent, unless they are unusual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, Final, Protocol

from broker_core.memory import PermitError
from broker_core.servers.kafka.pages.answer_page import AnswerPage, Key, UnitPlace
from broker_core.servers.kafka.pages.kept_answers import KeptRequest
from broker_core.servers.kafka.pages.page_rows import Item, item_runs, items_of, message_of
from broker_core.servers.kafka.pages.page_shapes import PageShape
from broker_core.servers.kafka.pages.raw_units import KEPT, RawUnits, asked_shape
from broker_core.servers.kafka.requests.call import KafkaCall
from broker_core.servers.kafka.requests.page_parts import UnitRange, size_of, units_of
from broker_core.wire.kafka import ZERO_ID, Api, Fields, RawRows

__all__ = ["PageRequest", "page_request"]

#: The part of a page that is asked for first, of items with any number of units.
_FIRST: Final = 16


class PageRequest(Protocol):
    """The names in a request. The type of a part is the implementation's."""

    def __len__(self) -> int: ...

    def has(self, first: str) -> bool:
        """Whether it names an item with this first field of a cursor."""

    def parts(self) -> Iterator[Any]:
        """The parts from the start of the page on, each of as many items as fill the page if all exist."""

    def answered(self, units: int) -> None:
        """Note that the parts until now had ``units`` units."""

    def filling(self) -> Any:
        """Fill the page with one unit for each item, and return the part on it."""

    async def body(self, part: Any) -> Fields:
        """The request for a part."""


async def page_request(call: KafkaCall, api: Api, shape: PageShape, page: AnswerPage) -> PageRequest:
    """The names in a request; none if it asks for all, or for topics by their ids."""
    rows = call.body[shape.asked[0].array] if shape.asked else None
    front = call.services.front
    kept = None if front is None or not rows else front.kept_request(call.asker, rows)
    if not rows:
        return _Decoded(call, shape, page, [])
    if shape.by_id and kept is None and await call.off_loop(len(rows), are_by_id, shape, rows):
        return _Decoded(call, shape, page, [])
    own = asked_shape(api, call.version)
    if isinstance(rows, RawRows) and own is not None:
        units = await units_of(call, own, rows) if kept is None else kept.units
        start = None if page.start is None else _own_place(shape, own, page.start)
        if units is not None and (start is None or units.before(start) is not None):
            # Whether an item of the request may have any number of units.
            is_open = units.is_open or len(own.answered) < len(shape.answered)
            if kept is None:
                _keep(call, page, rows, units, is_open=is_open)
            return _Bytes(call, api, shape, page, own, units, is_open=is_open)
    items = await call.off_loop(
        size_of(rows), items_of, shape, shape.asked, call.body, page, shape.asked_fields
    )
    return _Decoded(call, shape, page, items)


def are_by_id(shape: PageShape, rows: Any) -> bool:
    """Whether a request asks for some topic by its id."""
    if isinstance(rows, RawRows) and shape.by_id in rows.levels[0].fields:
        return not rows.are_zero(shape.by_id, len(ZERO_ID.bytes))
    return any(row[shape.by_id] != ZERO_ID for row in rows)


def _keep(call: KafkaCall, page: AnswerPage, rows: RawRows, units: RawUnits, *, is_open: bool) -> None:
    """Keep a large request of which the page has room for a part only, if there is memory."""
    front, size = call.services.front, KEPT * rows.nbytes
    if front is None or not call.size or (len(units) <= page.limit and not is_open):
        return
    try:
        permit = call.services.pipeline.permits.snapshots.try_acquire(size)
    except PermitError:
        return
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
        fields = shape.asked_fields
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
        """The key of items that are asked for at once: all below a row that may have an error of its own, which is
        answered as often as the row was asked for, if there are two of one name.
        """
        refused = self._shape.refused
        if refused is None or refused + 1 == len(self._shape.asked):
            return _order
        depth = refused + 1
        rows: dict[Key, set[int]] = {}
        for item in items:
            rows.setdefault(item.place.key[:depth], set()).add(id(item.path[refused]))
        return lambda item: item.place.key[:depth] if len(rows[item.place.key[:depth]]) > 1 else item.order

    def _known(self, item: Item, fields: Sequence[str]) -> int | None:
        """The number of fields of an order that an element has which asks for all that is in it: only the ones that it
        names.
        """
        if not item.is_row:
            return None
        shape = self._shape
        named = bool(shape.of_body) + sum(len(level.keys) for level in shape.asked[: len(item.path)])
        return len(shape.order_of(item.place.key, item.place.topic_id, fields[:named]))

    def answered(self, units: int) -> None:
        """Do nothing: the next part does not depend on it."""

    def filling(self) -> Sequence[Item]:
        taken: list[Any] = []
        self._page.fill(item_runs(self._shape, self._items, self._page.start, taken, taken))
        return [item for item, _ in taken]

    async def body(self, part: Sequence[Item]) -> Fields:
        taken = [(item, None) for item in part]
        return await self._call.off_loop(len(part), message_of, self._call.body, self._shape.asked, taken)


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
    ) -> None:
        self._is_open = is_open
        self._call = call
        self._api = api
        #: The number of items that were asked for until now, and the units of each.
        self._count = 0
        self._each = 1.0
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
        if start is None or self._shape.asked_fields is None:
            return 0
        return self._units.before(_own_place(self._shape, self._own, start), open_rows=True) or 0

    def parts(self) -> Iterator[tuple[int, int]]:
        low, end = self._low(), len(self._units)
        if self._shape.asked_fields is None or self._shape.sparse:
            yield 0, end
            return
        page, front = self._page, self._call.services.front
        most = step = page.limit + 1
        if self._is_open:
            known = None if front is None else front.units_each.get(self._api)
            step = most // _FIRST + 1 if known is None else min(int(page.limit / known) + 1, most)
        while True:
            high = min(low + step, end)
            self._count += high - low
            yield low, high
            if high == end:
                return
            low, step = high, most
            if self._is_open:  # as many as fill the page, if each has as much as the ones until now
                step = min(int(page.left / self._each) + 1, most)

    def answered(self, units: int) -> None:
        self._each = max(units, 1) / max(self._count, 1)
        front = self._call.services.front
        if front is not None:
            front.units_each[self._api] = self._each

    def filling(self) -> tuple[int, int]:
        low = self._low()
        run = UnitRange(self._units, low)
        self._page.fill([run])
        return low, low + run.count

    async def body(self, part: tuple[int, int]) -> Fields:
        array = self._own.answered[0].array
        return {**self._call.body, array: self._units.rows.cut(self._units.encoded(*part))}


def _order(item: Item) -> Any:
    return item.order


def _own_place(shape: PageShape, own: PageShape, place: UnitPlace) -> UnitPlace:
    """A place by the fields of the request alone."""
    values = dict(zip(shape.fields, place.key, strict=True))
    return UnitPlace(tuple(values[each] for each in own.fields))
