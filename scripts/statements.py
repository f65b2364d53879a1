"""Counts the statements of a source tree, and the share of its comments and docstrings: `make statements`.

    python scripts/statements.py [--by-package] [TREE ...]

A statement is one of Python's grammar, at any depth: an `if` with two statements in it counts three. Imports,
docstrings and files that a tool generates do not count, so that neither moving code nor explaining it changes the
number. The share is that of lines with a comment or a docstring in all lines that are not blank.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["GENERATED", "PARTS", "Size", "main", "measured", "size"]

#: The stems of files that `make proto` and `make kafka-tables` write.
GENERATED: Final = re.compile(r".*_pb2|api_tables")
PARTS: Final = {"broker_core": "broker_core", "plugins": "plugins", "tests": "tests"}


@dataclass(frozen=True, slots=True)
class Size:
    """Statements, lines that are not blank, and how many of these have a comment or a docstring."""

    statements: int = 0
    lines: int = 0
    explained: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(
            self.statements + other.statements, self.lines + other.lines, self.explained + other.explained
        )

    @property
    def share(self) -> float:
        """The share of comments and docstrings, from 0 to 1."""
        return self.explained / self.lines if self.lines else 0.0


def size(source: str) -> Size:
    """The size of a module."""
    statements = 0
    explained: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            explained.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
            statements += 1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            explained.add(token.start[0])
    filled = {number for number, line in enumerate(source.splitlines(), 1) if line.strip()}
    return Size(statements, len(filled), len(filled & explained))


def measured(folder: Path) -> Iterator[tuple[Path, Size]]:
    """Each module below a folder, but for those that a tool generates, and its size."""
    for path in sorted(folder.rglob("*.py")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and not GENERATED.fullmatch(path.stem):
            yield path, size(path.read_text(encoding="utf-8"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the sizes of the parts of each tree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", nargs="*", type=Path, default=[Path(__file__).parent.parent], metavar="TREE")
    parser.add_argument("--by-package", action="store_true", help="each folder of the parts too")
    options = parser.parse_args(arguments)
    for tree in options.trees:
        print(f"{tree.resolve().name:40}{'statements':>12}{'comments and docstrings':>26}")
        for name, folder in PARTS.items():
            packages: Counter[str] = Counter()
            total = Size()
            for path, each in measured(tree / folder):
                packages[str(path.parent.relative_to(tree))] += each.statements
                total += each
            print(f"{name:40}{total.statements:12,}{total.share:26.1%}")
            if options.by_package:
                for package, count in sorted(packages.items()):
                    print(f"  {package:38}{count:12,}")


if __name__ == "__main__":
    main()
