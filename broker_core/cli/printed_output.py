"""Printing on standard output: text in UTF-8 whatever the locale, JSON, and tables."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal

from broker_core.compact_json import compact_json
from broker_core.redaction import printable

__all__ = [
    "print_json",
    "print_lines",
    "print_pieces",
    "print_rows",
    "print_table",
    "printable",
    "table_text",
]

#: Spaces between the columns of a table.
_BETWEEN: Final = 3
#: Columns of a terminal that a folded cell keeps.
_NARROWEST: Final = 8


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; on a terminal without control characters, since names are foreign text."""
    if sys.stdout.isatty():
        lines = map(printable, lines)
    text = "\n".join(lines)
    if text:
        _write(text + "\n")


def print_pieces(pieces: Iterable[bytes | memoryview]) -> None:
    """Write bytes as they are, to output other than a terminal."""
    sys.stdout.flush()
    for piece in pieces:
        _write_bytes(piece)
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """Print one JSON document, as one line."""
    print_lines([compact_json(value)])


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, object]],
    form: Literal["table", "json"],
    *,
    alone: bool = False,
    caption: str | None = None,
) -> None:
    """Print rows as a table, or as JSON: a single row that is ``alone`` becomes an object instead of a list."""
    if form == "json":
        print_json(rows[0] if len(rows) == 1 and alone else rows)
    else:
        print_table(columns, ([row.get(column) for column in columns] for row in rows), caption=caption)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    caption: str | None = None,
) -> None:
    """Print :func:`table_text`."""
    _write(table_text(columns, rows, title=title, caption=caption))


def table_text(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    caption: str | None = None,
) -> str:
    """A table as wide as its cells need, since cut text could not be copied. Title and caption are lines around it. A
    boolean is `yes` or `no`, a mapping its pairs.

    On a terminal, cells of the widest columns are folded if a line would not fit. Made without rich's tables, which
    take a second for ten thousand rows.
    """
    header = [list(columns)] if any(columns) else []
    shown = [_shown(column) for column in zip(*header, *rows, strict=True)]
    is_plain = all(plain for _, plain in shown)
    natural = [max(map(len if is_plain else _width, texts)) for texts, _ in shown]
    widths = _fitted(natural, shutil.get_terminal_size().columns) if sys.stdout.isatty() else natural
    lines: list[str] = []
    if is_plain and widths == natural:  # all at once: there may be 100,000 rows
        form = f" {(' ' * _BETWEEN).join(f'%-{width}s' for width in widths)}"
        lines += map(str.rstrip, map(form.__mod__, zip(*(texts for texts, _ in shown), strict=True)))
        heads = len(header)
    else:
        heads = 0
        for number, row in enumerate(zip(*(texts for texts, _ in shown), strict=True)):
            lines += _lines(row, widths)
            heads = heads if number >= len(header) else len(lines)
    if header:
        lines.insert(heads, f" {'─' * (sum(widths) + _BETWEEN * (len(widths) - 1))}")
    return "\n".join([*([title] if title else []), "", *lines, "", *([caption] if caption else []), ""])


def _shown(cells: Sequence[object]) -> tuple[list[str], bool]:
    """The cells of a column as text, and whether each is one line of ASCII."""
    texts = [cell if type(cell) is str else _text(cell) for cell in cells]
    joined = "".join(texts)
    if joined.isascii() and joined.isprintable():
        return texts, True
    return ["\n".join(map(printable, text.split("\n"))) for text in texts], False


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, dict):
        return " ".join(f"{key}={value}" for key, value in cell.items())
    return "" if cell is None else str(cell)


def _width(cell: str) -> int:
    """The columns of a terminal that a cell takes."""
    if cell.isascii() and "\n" not in cell:
        return len(cell)
    from rich.cells import cell_len

    return max(map(cell_len, cell.split("\n")))


def _fitted(widths: list[int], room: int) -> list[int]:
    """The widths, the widest of which are reduced until a line fits, down to a few columns each."""
    widths = [*widths]
    while sum(widths) + _BETWEEN * (len(widths) - 1) + 1 > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """The lines of a row: one, unless a cell has several or is folded."""
    folded = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
    between = " " * _BETWEEN
    for parts in zip_longest(*folded, fillvalue=""):
        cells = (part + " " * (width - _width(part)) for part, width in zip(parts, widths, strict=True))
        yield f" {between.join(cells)}".rstrip()


def _folded(cell: str, width: int) -> list[str]:
    if "\n" not in cell and len(cell) <= width and (cell.isascii() or _width(cell) <= width):
        return [cell]
    from rich.cells import chop_cells

    return [part for line in cell.split("\n") for part in (chop_cells(line, width) if line else [""])]


def _write(text: str) -> None:
    sys.stdout.flush()
    if not hasattr(sys.stdout, "buffer"):  # a stand-in without bytes, as in tests
        sys.stdout.write(text)
        return
    _write_bytes(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def _write_bytes(piece: bytes | memoryview) -> None:
    data = memoryview(piece)
    while data:  # with PYTHONUNBUFFERED there is no buffer below, and a write may take only a part
        data = data[sys.stdout.buffer.write(data) :]
