"""Printing the topics of a listing: names, JSON, NDJSON, an Arrow stream, CSV or a table.

Formats other than tables are made by Arrow's kernels, a piece at a time, without a Python string for each name.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from broker_core.cli.printed_output import print_json, print_lines, print_pieces, print_table
from broker_core.compact_json import compact_json
from broker_core.counted import counted
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    import pyarrow as pa

    from broker_core.names import Mode, NamespaceName

__all__ = ["FEW", "Form", "PrintedListing", "print_change", "print_topics", "require_reader"]

Form: TypeAlias = Literal["names", "json", "table", "ndjson", "arrow", "csv"]

#: Up to so many names are printed without Arrow, which takes longer to load than to print them.
FEW: Final = 5_000


@dataclass(frozen=True, slots=True)
class PrintedListing:
    """A listing's answer for printing. ``names`` is a list of a few names, or a ``pyarrow.LargeStringArray``.

    ``matched_by`` says in words what applied the pattern; ``warnings`` are for standard error. ``details`` is a table
    of the names with details of their topics, if they were requested.
    """

    names: Any
    filtered: bool
    changed: bool
    topics_hash: str | None
    matched_by: str | None = None
    warnings: tuple[str, ...] = ()
    details: pa.Table | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of an answer besides the names."""
        return {"topics_hash": self.topics_hash, "filtered": self.filtered, "changed": self.changed}

    @property
    def column(self) -> Any:
        """The names as a ``pyarrow.LargeStringArray``."""
        import pyarrow as pa

        return pa.array(self.names, pa.large_string()) if isinstance(self.names, list) else self.names


def require_reader(form: Form) -> None:
    """Raise :exc:`~broker_core.errors.BrokerCoreError` for a form that a terminal cannot show."""
    if form == "arrow" and sys.stdout.isatty():
        raise BrokerCoreError("--format arrow is binary: redirect it into a file or a pipe")


def print_topics(listed: PrintedListing, form: Form, namespace: NamespaceName, mode: Mode) -> None:
    """Print an answer."""
    question = {"namespace": str(namespace), "mode": mode.name}
    if listed.details is not None:
        _print_details(listed, listed.details, form, question)
        return
    few = isinstance(listed.names, list) and len(listed.names) <= FEW
    if form == "table":
        rows = ([name] for name in _strings(listed.names))
        print_table(["topic"], rows, caption=", ".join(_facts(listed)))
    elif form == "csv":
        print_lines(_csv(["name"], ([name] for name in _strings(listed.names))))
    elif form == "arrow":
        from broker_core.listing import names_arrow

        print_pieces(names_arrow(listed.column))
    elif form == "json":
        if few or sys.stdout.isatty():
            print_json(question | {"topics": list(_strings(listed.names))} | listed.facts)
        else:
            print_pieces(_json(question, listed))
    elif form == "ndjson":
        trailer = compact_json(listed.facts)
        if few or sys.stdout.isatty():
            strings = (compact_json(name) for name in _strings(listed.names))
            print_lines([*strings, trailer])
        else:
            from broker_core.listing import names_ndjson

            print_pieces([*names_ndjson(listed.column), f"{trailer}\n".encode()])
    elif few or sys.stdout.isatty():
        print_lines(_lines(_strings(listed.names)))
    else:
        print_pieces(_text(listed.column))


def _print_details(listed: PrintedListing, table: pa.Table, form: Form, question: dict[str, Any]) -> None:
    rows = (row for batch in table.to_batches() for row in batch.to_pylist(maps_as_pydicts="strict"))
    if form == "table":
        cells = ([_cell(value) for value in row.values()] for row in rows)
        print_table(["topic", *table.column_names[1:]], cells, caption=", ".join(_facts(listed)))
    elif form == "csv":
        print_lines(_csv(table.column_names, ([_csv_cell(value) for value in row.values()] for row in rows)))
    elif form == "json":
        print_json(question | {"topics": list(rows)} | listed.facts)
    elif form == "ndjson":
        print_lines(compact_json(row) for row in chain(rows, [listed.facts]))
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


def _cell(value: object) -> object:
    return " ".join(f"{key}={of}" for key, of in value.items()) if isinstance(value, dict) else value


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


def _strings(names: Any) -> Iterable[str]:
    strings: Iterable[str] = names if isinstance(names, list) else names.to_pylist()
    return strings


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


def _json(question: dict[str, Any], listed: PrintedListing) -> Iterator[bytes | memoryview]:
    from broker_core.listing import names_json_items

    yield f'{compact_json(question)[:-1]},"topics":['.encode()
    yield from names_json_items(listed.column)
    yield f"],{compact_json(listed.facts)[1:]}\n".encode()


def _facts(listed: PrintedListing) -> list[str]:
    facts = [
        counted(len(listed.names), "topic") if listed.changed else "unchanged",
        f"hash {listed.topics_hash}" if listed.topics_hash else "no hash",
    ]
    return facts if listed.matched_by is None else [*facts, listed.matched_by]
