"""The rows of a request or an answer as units in the order of their keys, and the message of some of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from broker_core.listing import utf16_key
from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace
from broker_core.servers.kafka.pages.page_shapes import Level, PageShape
from broker_core.servers.kafka.row_error import RowError
from broker_core.wire.kafka import ZERO_ID, Api, ErrorCode, Fields, Numbered, Order

__all__ = ["Item", "Taken", "item_runs", "items_of", "message_of", "refusal_of"]

#: An item with its units from a first one on, without the last; ``None`` if it has no numbers.
Taken: TypeAlias = "tuple[Item, tuple[int, int] | None]"


class Item(NamedTuple):
    """An element of the deepest array, after the elements that contain it, and its place.

    If elements are ``numbered``, it is the row that has them. ``is_row`` says that an array in the last element is
    empty.
    """

    order: Order
    place: UnitPlace
    path: tuple[Any, ...]
    numbered: Numbered | None = None
    is_row: bool = False


def items_of(
    shape: PageShape,
    levels: Sequence[Level],
    message: Fields,
    page: AnswerPage,
    fields: Sequence[str] | None = None,
) -> list[Item]:
    """All items of a message, in order: by all fields of the cursor, or by some."""
    found = dict(zip(shape.fields, page.beginning, strict=True))
    # Once for each name, which may be long and have 100,000 partitions.
    text_key = cache(utf16_key)

    def of(keys: Mapping[str, Any], topic_id: uuid.UUID, path: tuple[Any, ...], **more: Any) -> Item:
        key = tuple(keys[each] for each in shape.fields)
        return Item(shape.order_of(key, topic_id, fields, text_key), UnitPlace(key, topic_id), path, **more)

    def walk(
        keys: Mapping[str, Any], topic_id: uuid.UUID, parent: Any, depth: int, path: tuple[Any, ...]
    ) -> Iterator[Item]:
        level = levels[depth]
        rows = parent.get(level.array)
        if isinstance(rows, Numbered):
            yield of(keys, topic_id, path, numbered=rows, is_row=not rows.count)
            return
        if not rows:
            if path:
                yield of(keys, topic_id, path, is_row=True)
            return
        for row in rows:
            mine = dict(keys)
            of_row = topic_id
            for name, inside in level.keys.items():
                value = row.get(inside, keys[name]) if inside else row
                # No cursor has a negative number: an item with one is answered beside the first.
                mine[name] = max(value, 0) if isinstance(value, int) else value
            if "topic_name" in level.keys:
                of_row = row.get("topic_id", ZERO_ID)
                if of_row == ZERO_ID:
                    of_row = page.topic_ids.get(mine["topic_name"], ZERO_ID)
                mine["topic_name"] = mine["topic_name"] or page.names.get(of_row, "")
            if depth + 1 < len(levels):
                yield from walk(mine, of_row, row, depth + 1, (*path, row))
            else:
                yield of(mine, of_row, (*path, row))

    return sorted(walk(found, ZERO_ID, message, 0, ()), key=lambda item: item.order)


def message_of(message: Fields, levels: Sequence[Level], taken: Iterable[Taken]) -> Fields:
    """The message with these items alone; the given one is not changed."""
    made: dict[tuple[int, int], Fields] = {}
    whole: Fields = {**message, levels[0].array: []}
    for item, numbers in taken:
        parent = whole
        for depth, row in enumerate(item.path):
            if depth + 1 == len(levels):
                parent[levels[depth].array].append(row)
                break
            copy = made.get((depth, id(row)))
            if copy is None:
                inner = levels[depth + 1].array
                copy = made[depth, id(row)] = {**row}
                if depth + 1 < len(item.path):
                    copy[inner] = []
                parent[levels[depth].array].append(copy)
            parent = copy
        if item.numbered is not None and numbers is not None:
            parent[levels[-1].array] = item.numbered.part(*numbers)
    return whole


class _ItemRun:
    """A run of one item, or of one item of a unit that has several; ``first`` is the number of its first numbered
    element.
    """

    __slots__ = ("_first", "_item", "_taken", "size", "stops")

    def __init__(
        self, item: Item, taken: list[Taken], size: int, *, stops: bool = True, first: int = 0
    ) -> None:
        self._item = item
        self._taken = taken
        self._first = first
        self.size = size
        self.stops = stops

    def take(self, count: int) -> None:
        numbers = (
            None if self._item.is_row or self._item.numbered is None else (self._first, self._first + count)
        )
        self._taken.append((self._item, numbers))

    def place(self, count: int) -> UnitPlace:
        place = self._item.place
        number = self._first + count
        return place._replace(key=(*place.key[:-1], number)) if number else place


def item_runs(
    shape: PageShape, items: Iterable[Item], start: UnitPlace | None, taken: list[Taken], last: list[Taken]
) -> Iterator[_ItemRun]:
    """The items from a start on. Items that come after all others by Kafka's own rules go to ``last``."""
    begin: Order = () if start is None else shape.order_of(start.key, start.topic_id)
    former: Order | None = None
    for item in items:
        is_first = item.order[:-1] == begin[:-1]
        if shape.as_kafka:
            if item.order[:-1] < begin[:-1]:
                continue
            error = item.path[0]["error_code"]
            if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                last.append((item, None))
                continue
        if item.numbered is not None and not item.is_row:
            if item.order[:-1] < begin[:-1]:
                continue
            first = start.key[-1] if start is not None and is_first else 0
            left = item.numbered.count - first
            if left > 0:
                yield _ItemRun(item, taken, left, first=first)
            elif shape.as_kafka:
                yield _ItemRun(item, taken, 0, first=first)
            continue
        if item.order < begin and not shape.as_kafka:
            continue
        is_more = item.order == former
        former = item.order
        yield _ItemRun(item, taken, 0 if is_more or shape.as_kafka else 1, stops=not is_more)


def refusal_of(api: Api, shape: PageShape, body: Fields, error: ErrorCode, message: str) -> Fields:
    """The answer to a request that is refused."""
    at = shape.answered if shape.refused is None else shape.answered[: shape.refused + 1]
    path = ".".join(level.array for level in at)
    row_of = api.response if shape.refused is None else api.response.struct_at(path)
    failed = RowError(error, message).fields_of(row_of)
    if shape.refused is None:
        return failed
    deepest = shape.refused

    def rows(parent: Fields, depth: int) -> Iterator[Fields]:
        level = shape.answered[depth]
        requested = next((each for each in shape.requested if each.keys.keys() <= level.keys.keys()), None)
        for element in () if requested is None else parent.get(requested.array) or ():
            assert requested is not None  # it has the elements
            row = {
                level.keys[name]: element[inside] if inside else element
                for name, inside in requested.keys.items()
            }
            if shape.by_id:
                row |= {shape.by_id: element[shape.by_id]}
            if depth == deepest:
                yield row | failed
            else:
                # An element that names nothing below still has a row there: an error is never silent.
                yield row | {shape.answered[depth + 1].array: list(rows(element, depth + 1)) or [failed]}

    found = list(rows(body, 0)) or ([] if shape.lone is None else [{**shape.lone, **failed}])
    return {shape.answered[0].array: found}
