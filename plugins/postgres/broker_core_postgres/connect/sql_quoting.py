"""Quoting for SQL that takes no parameters: identifiers and string literals."""

from __future__ import annotations

__all__ = ["quote_identifier", "quote_literal"]


def quote_identifier(name: str) -> str:
    """Quote a name as an identifier that keeps its case."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """Quote a text as a literal, for either value of ``standard_conforming_strings``."""
    doubled = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{doubled}'"
