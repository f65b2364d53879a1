"""Printing on standard output: text in UTF-8 whatever the locale, JSON, and tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from broker_core.redaction.printable import printable

__all__ = ["print_json", "print_lines", "print_pieces", "print_table", "printable"]


def print_lines(lines: Iterable[str]) -> None:
    """One line each; on a terminal without the characters that it would obey, since names are other people's text."""
    if sys.stdout.isatty():
        lines = map(printable, lines)
    text = "\n".join(lines)
    if text:
        _write(text + "\n")


def print_pieces(pieces: Iterable[bytes | memoryview]) -> None:
    """Bytes as they are, for output that is no terminal."""
    sys.stdout.flush()
    for piece in pieces:
        _write_bytes(piece)
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """One JSON document, indented for a person where it is small."""
    text = json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    _write(text + "\n")


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    caption: str | None = None,
) -> None:
    """A table as wide as it needs: what is cut off cannot be copied. Title and caption are lines around it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, pad_edge=False)
    table.show_header = any(columns)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_shown(cell)) for cell in row))
    console = _console()
    if title:
        console.print(Text(title))
    console.print(table)
    if caption:
        console.print(Text(caption))


def _shown(cell: object) -> str:
    return "\n".join(printable(line) for line in str("" if cell is None else cell).split("\n"))


def _console() -> Any:
    from rich.console import Console

    if sys.stdout.isatty():
        return Console()
    # Into a file or a pipe: no colours, and no width that would break lines.
    return Console(file=sys.stdout, no_color=True, width=200, highlight=False)


def _write(text: str) -> None:
    sys.stdout.flush()
    if not hasattr(sys.stdout, "buffer"):  # a stand-in without bytes, as in tests
        sys.stdout.write(text)
        return
    _write_bytes(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def _write_bytes(piece: bytes | memoryview) -> None:
    data = memoryview(piece)
    while data:  # with PYTHONUNBUFFERED there is no buffer below, and a write may take a part only
        data = data[sys.stdout.buffer.write(data) :]
