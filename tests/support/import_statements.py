"""The import statements of a module, found without a look at its expressions, which are nine tenths of its tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["import_statements"]

#: What of a statement has statements in it.
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def import_statements(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports in functions and for types alone too; the outer ones come first, as of ``ast.walk``."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        for block in _BLOCKS:
            nodes.extend(getattr(node, block, ()))
