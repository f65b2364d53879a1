"""The parts of a page: the answers to the parts of a request, as units in order, taken until the page is full."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace
from broker_core.servers.kafka.pages.page_rows import Item, Taken, item_runs, items_of, message_of
from broker_core.servers.kafka.pages.page_shapes import PageShape
from broker_core.servers.kafka.pages.raw_units import RawUnits
from broker_core.servers.kafka.requests.call import KafkaCall
from broker_core.wire.kafka import Encoded, Fields, RawRows

__all__ = ["FEW_ROWS", "PageParts", "UnitRange", "names_on_page", "size_of", "units_of"]

#: Rows that are decoded, with up to so many bytes on average: columns of any number cost half a millisecond.
FEW_ROWS: Final = 32
_FEW_BYTES: Final = 256
#: Elements that are looked at as bytes in the time of decoding one.
_QUICKER: Final = 50


def size_of(rows: Any) -> int:
    """The approximate number of elements of rows."""
    return sum(1 + (len(row) if isinstance(row, list) else 0) for row in rows)


async def units_of(call: KafkaCall, shape: PageShape, rows: RawRows, *, few: bool = False) -> RawUnits | None:
    """The units of rows that stay bytes; ``None`` for unusual rows, and unless ``few``, for rows so few that decoding
    is quicker than columns.
    """
    leaves = len(rows.levels[-1].starts)
    if not few and max(leaves, len(rows)) < FEW_ROWS and rows.size < FEW_ROWS * _FEW_BYTES:
        return None
    count = leaves // _QUICKER
    return await call.off_loop(count, RawUnits.of, shape, rows)


async def names_on_page(call: KafkaCall, shape: PageShape, fields: Fields) -> set[str] | None:
    """The topics on the page and right behind it, if none is hidden, of an answer that is kept for a pass."""
    page, rows = call.page, fields.get(shape.answered[0].array)
    whole = None if page is None else page.whole_of(fields)
    if page is None or whole is None or not isinstance(rows, RawRows):
        return None
    if whole.units is None:
        whole.units = await units_of(call, shape, rows)
    units = whole.units
    low = units.before(page.start) if page.start is not None and isinstance(units, RawUnits) else 0
    if low is None or not isinstance(units, RawUnits):
        return None
    return units.firsts(low, low + page.limit + 1) - {""}


class PageParts:
    """The answers to parts of one request, each about the units after the part before it.

    Rows that a node of a cluster answered stay bytes, unless they are unusual.
    """

    def __init__(self, call: KafkaCall, shape: PageShape, page: AnswerPage) -> None:
        self._call = call
        self._shape = shape
        self._page = page
        self._answers: list[Fields] = []
        self._units: list[RawUnits] = []
        self._ranges: list[UnitRange] = []
        self._are_bytes = True
        self._items: list[Item] = []
        self._taken: list[Taken] = []
        self._last: list[Taken] = []

    async def add(self, fields: Fields) -> None:
        """Fill the page with the units of the answers until now, and of this one."""
        self._answers.append(fields)
        self._are_bytes = self._are_bytes and await self._has_bytes(fields)
        if self._are_bytes:
            # A node may have no row for what it is asked, as for a topic of which no partition is asked for.
            self._page.fill([each for each in self._ranges if each.size])
            return
        new = [fields] if self._items else self._answers
        for each in new:
            await self._decode(each)
        self._taken, self._last = [], []
        runs = item_runs(self._shape, self._items, self._page.start, self._taken, self._last)
        await self._call.off_loop(len(self._items), self._page.fill, runs)
        self._page.following = self._page.following or self._cut(fields)

    @property
    def size(self) -> int:
        """The units of all answers until now."""
        return sum(map(len, self._units)) if self._are_bytes else len(self._items)

    @property
    def nbytes(self) -> int:
        """The bytes of their rows, if they stay bytes, else 0."""
        return sum(each.rows.size for each in self._units) if self._are_bytes else 0

    async def message(self) -> Fields:
        """The answer with the units on the page."""
        first, shape = self._answers[0], self._shape
        if self._are_bytes:
            parts = [each.encoded() for each in self._ranges]
            rows = Encoded(sum(each.count for each in parts), list(chain(*(each.pieces for each in parts))))
            return {**first, shape.answered[0].array: rows}
        taken = [*self._taken, *self._last]
        return await self._call.off_loop(len(taken), message_of, first, shape.answered, taken)

    async def _has_bytes(self, fields: Fields) -> bool:
        rows = fields.get(self._shape.answered[0].array)
        if not isinstance(rows, RawRows):
            return False
        whole = self._page.whole_of(fields)
        units = None if whole is None else whole.units
        if units is None:
            units = await units_of(self._call, self._shape, rows, few=bool(self._units))
            if whole is not None:
                whole.units = units
        if not isinstance(units, RawUnits):
            return False
        start = self._page.start
        low = 0 if start is None else units.before(start)
        # An error of the whole answer comes with each part.
        follows = all(not units.before(each.place(len(each) - 1)) for each in self._units if len(each))
        twice = bool(self._units and len(units) and len(self._units[-1])) and (
            self._units[-1].place(len(self._units[-1]) - 1) == units.place(0)
        )
        if low is None or not follows or twice:
            return False
        self._units.append(units)
        self._ranges.append(UnitRange(units, low))
        return True

    async def _decode(self, fields: Fields) -> None:
        whole = self._page.whole_of(fields)
        if whole is not None and isinstance(whole.units, list):
            more = whole.units
        else:
            shape = self._shape
            size = size_of(fields.values())
            more = await self._call.off_loop(size, items_of, shape, shape.answered, fields, self._page)
            if whole is not None:
                whole.units = more
        # An error of the whole answer comes with each part.
        items = [
            *self._items,
            *(each for each in more if not self._items or each.order > self._items[-1].order),
        ]
        cut = self._cut(fields)
        if cut is not None:
            end = self._shape.order_of(cut.key, cut.topic_id)
            items = [each for each in items if each.order < end]
        self._items = items

    def _cut(self, fields: Fields) -> UnitPlace | None:
        """The place where a node has cut its answer, if it is asked for pages of its own
        (:meth:`~.answer_page.AnswerPage.for_node`).
        """
        cursor = fields.get("next_cursor")
        return UnitPlace(tuple(cursor[each] for each in self._shape.fields)) if cursor else None


class UnitRange:
    """The units of an answer from one on, as a run of the page; so many are taken."""

    stops = True

    def __init__(self, units: RawUnits, low: int) -> None:
        self._units = units
        self._low = low
        self.count = 0
        self.size = len(units) - low

    def take(self, count: int) -> None:
        self.count = count

    def place(self, count: int) -> UnitPlace:
        return self._units.place(self._low + count)

    def encoded(self) -> Encoded:
        """The rows of the taken units."""
        return self._units.encoded(self._low, self._low + self.count)
