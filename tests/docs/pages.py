"""The pages of docs/ as data: their blocks of code, their headings and their tables.

Each page is parsed once in a process: many tests ask for each row of the same tables, and no test changes a page.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = [
    "DOCS",
    "RECIPES",
    "ROOT",
    "Block",
    "Table",
    "all_pages",
    "anchors",
    "blocks",
    "blocks_of",
    "code_in",
    "headings",
    "named",
    "read",
    "rows",
    "tables",
    "write_recipes",
]

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_FILE = re.compile(r"(?:# (?P<name>(?:[\w-]+/)*[\w-]+\.(?:py|toml))|// (?P<module>(?:[\w-]+/)+[\w-]+\.js))\n")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. ``file`` is the name of the file that it is, by its first line ``# NAME.py``,
    ``# FOLDER/NAME.py`` or ``// FOLDER/NAME.js``."""

    page: str
    line: int
    language: str
    text: str

    @property
    def file(self) -> str | None:
        named = _FILE.match(self.text)
        return None if named is None else named["name"] or named["module"]

    def __str__(self) -> str:
        return f"docs/{self.page}:{self.line}"


@dataclass(frozen=True, slots=True)
class Table:
    """One table: the headings that it stands under, its columns, and its rows of raw cells."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def all_pages() -> list[str]:
    """The pages by their path in docs/, sorted."""
    return sorted(
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if "_build" not in path.relative_to(DOCS).parts
    )


RECIPES: Final = [page for page in all_pages() if page.startswith("how-to/recipes/")]


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@cache
def blocks(page: str) -> tuple[Block, ...]:
    """The fenced blocks of a page, in order; an indented one (in a list) without its indentation."""
    return tuple(blocks_of(read(page), page))


def blocks_of(text: str, page: str) -> list[Block]:
    """The blocks of a text that is called ``page`` in errors."""
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match["language"], textwrap.dedent(match["text"]))
        for match in _FENCE.finditer(text)
    ]


def write_recipes(plugins: Path, tests: Path) -> None:
    """Write the plugin of each recipe into one folder, and its test into another one."""
    for page in RECIPES:
        files = [block for block in blocks(page) if block.language == "python" and block.file is not None]
        assert len(files) == 2, f"{page}: a plugin and its test"
        for block in files:
            assert block.file is not None
            folder = tests if block.file.startswith("test_") else plugins
            (folder / block.file).write_text(block.text, encoding="utf-8")


@cache
def _prose(page: str) -> str:
    return _FENCE.sub("", read(page))


def headings(page: str) -> list[str]:
    """The texts of all headings, without their marks."""
    return re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)


@cache
def anchors(page: str) -> frozenset[str]:
    """What a link to the page may have behind its ``#``: the targets that it names, and the slugs of its headings."""
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings(page)}
    return frozenset(slugs).union(re.findall(r"^\(([\w-]+)\)=$", _prose(page), re.MULTILINE))


@cache
def tables(page: str) -> tuple[Table, ...]:
    """The tables of a page, in order."""
    found: list[Table] = []
    heading = ""
    rows: list[tuple[str, ...]] = []

    def close() -> None:
        if rows:
            columns, _, *body = rows
            found.append(Table(heading, columns, tuple(body)))
            rows.clear()

    for line in [*_prose(page).splitlines(), ""]:
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
            rows.append(tuple(cell.strip().replace("\\|", "|") for cell in cells))
            continue
        close()
        if line.startswith("#"):
            heading = line.lstrip("# ")
    return tuple(found)


def code_in(cell: str) -> list[str]:
    """The texts in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def rows(page: str, heading: str, first_column: str) -> list[dict[str, str]]:
    """The rows of the tables under a heading that begin with this column, by their columns."""
    return [
        dict(zip(table.columns, row, strict=True))
        for table in tables(page)
        if table.heading == heading and table.columns[0] == first_column
        for row in table.rows
    ]


def named(page: str, heading: str, first_column: str) -> list[str]:
    """The texts in backticks in the first column of these tables, in order."""
    return [name for row in rows(page, heading, first_column) for name in code_in(row[first_column])]
