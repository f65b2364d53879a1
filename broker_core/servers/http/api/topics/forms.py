"""The forms of a listing by media type: JSON, lines of JSON, text, an Arrow stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from broker_core.listing.details import Details
from broker_core.listing.rendered.block_size import BlockSize
from broker_core.listing.rendered.detail_blocks import detail_size
from broker_core.listing.rendered.details import detail_arrow, detail_json_items, detail_ndjson
from broker_core.listing.rendered.name_blocks import RenderedNames
from broker_core.listing.rendered.names import names_arrow, names_json_items, names_ndjson, names_text
from broker_core.servers.http.api.body_writer import RenderedBody

__all__ = [
    "ARROW",
    "DETAILS",
    "JSON",
    "NAMES",
    "NDJSON",
    "TEXT",
    "ListingEnd",
    "details_body",
    "names_body",
]

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
TEXT: Final = "text/plain"
ARROW: Final = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True, slots=True)
class ListingEnd:
    """What is said of a listing besides its topics. ``more`` are further members, such as ``total``."""

    filtered: bool
    topics_hash: str | None
    next: str | None = None
    more: Mapping[str, Any] | None = None


#: The names of a listing by media type.
NAMES: Final[Mapping[str, Callable[[RenderedNames, BlockSize], Iterator[bytes | memoryview]]]] = {
    JSON: names_json_items,
    NDJSON: names_ndjson,
    TEXT: names_text,
    ARROW: names_arrow,
}
#: The names with details by media type: lines of text have no room for more than a name.
DETAILS: Final[
    Mapping[str, Callable[[RenderedNames, Details, Sequence[str], BlockSize], Iterator[bytes | memoryview]]]
] = {JSON: detail_json_items, NDJSON: detail_ndjson, ARROW: detail_arrow}
#: Bytes that each name takes besides its own, at the most as a rule.
_BESIDES: Final = 3
#: Bytes of the names of a page that are looked at in some tens of microseconds, before the first piece is made.
_QUICK: Final = 1024 * 1024


def names_body(media_type: str, names: RenderedNames, size: int, end: ListingEnd) -> RenderedBody:
    """The names in this form; ``size`` is that of their bytes."""
    block = BlockSize()
    body = listing_body(media_type, NAMES[media_type](names, block), block, size + _BESIDES * len(names), end)
    body.quick = isinstance(names, pa.Array) and names.nbytes <= _QUICK
    return body


def details_body(
    media_type: str, names: RenderedNames, details: Details, columns: Sequence[str], end: ListingEnd
) -> RenderedBody:
    """The names with details of their topics in this form, which is not text."""
    block = BlockSize()
    items = DETAILS[media_type](names, details, columns, block)
    return listing_body(media_type, items, block, detail_size(names, details), end)


def listing_body(
    media_type: str, items: Iterator[bytes | memoryview], block: BlockSize, size: int, end: ListingEnd
) -> RenderedBody:
    """Rendered items in this form, with what is around them. ``size`` is that of the items, about."""
    said: dict[str, Any] = {"filtered": end.filtered, "next": end.next, **(end.more or {})}
    if media_type == JSON:
        # Behind the items: what is counted may be known only then.
        rest = json.dumps(said)[1:]
        return RenderedBody(JSON, items, block, size, b'{"items":[', f"],{rest}\n".encode())
    if media_type == NDJSON:
        trailer = json.dumps({"topics_hash": end.topics_hash} | said)
        return RenderedBody(NDJSON, items, block, size, end=f"{trailer}\n".encode())
    content_type = f"{TEXT}; charset=utf-8" if media_type == TEXT else media_type
    return RenderedBody(content_type, items, block, size)
