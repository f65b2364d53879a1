"""Likely mistakes in files of names: other kinds of files read as names, white space at an end, and tabs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from broker_core.catalog.catalog_errors import NotNames

__all__ = ["WHITE_SPACE", "OddNames", "begins_another_file", "begins_object"]


#: Characters that `str.strip` takes off, without the line feed, which ends a line.
WHITE_SPACE: Final = "\t\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680" + (
    "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_BLANK: Final = WHITE_SPACE + "\n"
#: The beginning of a table's first line, with its separator of columns.
_HEADER: Final = re.compile(r'("?)name\1 *([,;\t])', re.IGNORECASE)
#: The beginning of an object of JSON with a key.
_OBJECT: Final = re.compile(r'\{[ \t]*"')
_ODD: Final = (
    "the name has {}, which is hardly meant. Such a name is written as JSON, each line of the file then"
)


def begins_another_file(name: str) -> bool:
    """Whether a file that begins with this name may be taken for JSON or a table, or has a byte order mark."""
    return name.startswith(("{", "[", "\ufeff")) or _HEADER.match(name) is not None


def begins_object(name: str) -> bool:
    """Whether a line that begins with this name may be taken for an object of JSON."""
    return _OBJECT.match(name) is not None


class OddNames:
    """Checks the lines of one file of names, a chunk at a time. Raises :exc:`~broker_core.catalog.NotNames`.

    A chunk is searched as a whole, not line by line.
    """

    __slots__ = ("_columns", "_first_return", "_lines")

    def __init__(self) -> None:
        self._lines = 0
        #: The separator of columns and how often each line so far has it, if the file may be a table.
        self._columns: tuple[str, int] | None = None
        #: The first line that ends in a carriage return. All may do so, which is another mistake, known at the end.
        self._first_return: int | None = None

    def check(self, text: str, lines: Sequence[str]) -> None:
        """Check a chunk, as it is and by lines."""
        if not self._lines:
            # White space before it is probably a mistake too: the name is refused in any case.
            if text.lstrip(_BLANK).startswith("["):
                raise NotNames(
                    1,
                    "the file begins with '[', as an array of JSON does: write one object a line, such as "
                    '{"name": "orders"} (`jq -c \'.[]\'` does so), or one name a line',
                )
            if header := _HEADER.match(text):
                self._columns = (header[2], lines[0].count(header[2]))
        if self._columns is not None:
            mark, count = self._columns
            if any(line.count(mark) != count for line in lines):
                self._columns = None
        if self._first_return is None and (text.endswith("\r") or "\r\n" in text):
            number = next(number for number, line in enumerate(lines) if line.endswith("\r"))
            self._first_return = self._lines + number + 1
        if text.startswith("{") or "\n{" in text:
            for number, line in enumerate(lines, self._lines + 1):
                if begins_object(line):
                    raise NotNames(
                        number,
                        "the line looks like JSON, and the file begins with a plain name: write each line as JSON, "
                        'such as {"name": "orders"}, or each as a name',
                    )
        if any(map(text.__contains__, WHITE_SPACE)):
            self._check_white_space(text, lines)
        self._lines += len(lines)

    def check_whole(self) -> None:
        """Do the checks that need all lines."""
        if self._first_return is not None:
            raise NotNames(self._first_return, _ODD.format("white space at an end"))
        if self._columns is not None:
            raise self._table()

    def _table(self) -> NotNames:
        assert self._columns is not None
        mark = {",": "commas", ";": "semicolons", "\t": "tabs"}[self._columns[0]]
        return NotNames(
            1,
            f"the file looks like CSV: it begins with 'name' as a table's header does, and each line has as many "
            f"{mark}. "
            'Write JSON lines such as {"name": "orders", "partitions": 3}, or one name a line',
        )

    def _check_white_space(self, text: str, lines: Sequence[str]) -> None:
        if "\t" not in text and not any(
            text.startswith(space)
            or f"\n{space}" in text
            or (space != "\r" and (text.endswith(space) or f"{space}\n" in text or f"{space}\r\n" in text))
            for space in WHITE_SPACE
        ):
            return
        for number, line in enumerate(lines, self._lines + 1):
            if "\t" in line:
                if self._columns is not None:
                    raise self._table()
                raise NotNames(number, _ODD.format("a tab"))
            name = line.removesuffix("\r")
            if name != name.strip(WHITE_SPACE):
                raise NotNames(number, _ODD.format("white space at an end"))
