"""Printing the topics of a listing: names, JSON, NDJSON, an Arrow stream, CSV or a table.

Formats other than tables are made by Arrow's kernels, a piece at a time, without a Python string for each name.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from broker_core.cli.printed_output import print_json, print_lines, print_pieces, print_table
from broker_core.compact_json import compact_json
from broker_core.counted import counted
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    import pyarrow as pa

    from broker_core.client import TopicListing

__all__ = ["FEW", "Form", "print_change", "print_topics", "require_reader"]

Form: TypeAlias = Literal["names", "json", "table", "ndjson", "arrow", "csv"]

#: Up to so many names are printed without Arrow, which takes longer to load than to print them.
FEW: Final = 5_000


def require_reader(form: Form) -> None:
    """Raise :exc:`~broker_core.errors.BrokerCoreError` for a form that a terminal cannot show."""
    if form == "arrow" and sys.stdout.isatty():
        raise BrokerCoreError("--format arrow is binary: redirect it into a file or a pipe")


def print_topics(
    listing: TopicListing,
    form: Form,
    question: dict[str, Any],
    *,
    matched_by: str | None = None,
    details: pa.Table | None = None,
) -> None:
    """Print an answer to ``question``, which JSON shows.

    ``matched_by`` says in words what applied the pattern. ``details`` is a table of the names with details of their
    topics, if they were requested.
    """
    facts = {
        "topics_hash": listing.topics_hash,
        "filtered": listing.filtered,
        "changed": listing.changed,
    }
    few = len(listing) <= FEW or sys.stdout.isatty()
    if details is not None:
        _print_details(details, form, question, facts, _caption(listing, matched_by))
    elif form == "table":
        print_table(["topic"], ([name] for name in listing), caption=_caption(listing, matched_by))
    elif form == "csv":
        print_lines(_csv(["name"], ([name] for name in listing)))
    elif form == "arrow":
        from broker_core.listing import names_arrow

        print_pieces(names_arrow(listing.names))
    elif form == "json":
        if few:
            print_json(question | {"topics": list(listing)} | facts)
        else:
            print_pieces(_json(question, listing.names, facts))
    elif form == "ndjson":
        trailer = compact_json(facts)
        if few:
            print_lines([*map(compact_json, listing), trailer])
        else:
            from broker_core.listing import names_ndjson

            print_pieces([*names_ndjson(listing.names), f"{trailer}\n".encode()])
    elif few:
        print_lines(_lines(listing))
    else:
        print_pieces(_text(listing.names))


def _print_details(
    table: pa.Table, form: Form, question: dict[str, Any], facts: dict[str, Any], caption: str
) -> None:
    rows = (row for batch in table.to_batches() for row in batch.to_pylist(maps_as_pydicts="strict"))
    if form == "table":
        print_table(["topic", *table.column_names[1:]], (list(row.values()) for row in rows), caption=caption)
    elif form == "csv":
        print_lines(_csv(table.column_names, ([_csv_cell(value) for value in row.values()] for row in rows)))
    elif form == "json":
        print_json(question | {"topics": list(rows)} | facts)
    elif form == "ndjson":
        print_lines(compact_json(row) for row in chain(rows, [facts]))
    else:
        from broker_core.listing import BlockSize, arrow_stream

        print_pieces(arrow_stream(table.schema, iter(table.to_batches()), BlockSize()))


def _csv(columns: list[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Lines of RFC 4180; a name with a line feed is within quotes."""
    for row in chain([columns], rows):
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(row)  # it quotes fields with these characters
        yield line.getvalue().removesuffix("\r\n")


def _csv_cell(value: object) -> object:
    return compact_json(value) if isinstance(value, dict) else value


def print_change(sign: Literal["+", "-"], names: Any, form: Form) -> None:
    """Print topics that came (``+``) or went (``-``), one a line; ``names`` is a ``pyarrow.LargeStringArray``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if form == "ndjson":
        from broker_core.listing import names_ndjson

        key = "added" if sign == "+" else "removed"
        strings = b"".join(names_ndjson(names)).removesuffix(b"\n")
        lines = strings.replace(b"\n", b'}\n{"%b":' % key.encode())
        print_pieces([b'{"%b":' % key.encode(), lines, b"}\n"] if strings else [])
    elif sys.stdout.isatty() or len(names) <= FEW:
        print_lines(f"{sign} {name}" for name in _lines(names.to_pylist()))
    else:
        signed = pc.binary_replace_slice(names.cast(pa.large_binary()), 0, 0, f"{sign} ".encode())
        print_pieces(_text(signed.cast(pa.large_string())))


def _lines(names: Iterable[str]) -> Iterator[str]:
    """Names as lines; on a terminal without control characters, so that each stays one line."""
    for name in names:
        if "\n" in name and not sys.stdout.isatty():
            raise _line_feed()
        yield name


def _text(names: Any) -> Iterator[bytes | memoryview]:
    from broker_core.listing import LineFeedInName, names_text

    try:
        yield from names_text(names)
    except LineFeedInName:
        raise _line_feed() from None


def _line_feed() -> BrokerCoreError:
    return BrokerCoreError(
        "a name has a line feed, so that names are no lines: ask with --format json or ndjson"
    )


def _json(
    question: dict[str, Any], names: pa.LargeStringArray, facts: dict[str, Any]
) -> Iterator[bytes | memoryview]:
    from broker_core.listing import names_json_items

    yield f'{compact_json(question)[:-1]},"topics":['.encode()
    yield from names_json_items(names)
    yield f"],{compact_json(facts)[1:]}\n".encode()


def _caption(listing: TopicListing, matched_by: str | None) -> str:
    facts = [
        counted(len(listing), "topic") if listing.changed else "unchanged",
        f"hash {listing.topics_hash}" if listing.topics_hash else "no hash",
    ]
    return ", ".join(facts if matched_by is None else [*facts, matched_by])
