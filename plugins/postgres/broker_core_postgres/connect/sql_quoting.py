"""Quoting for SQL that takes no parameters: identifiers and string literals."""

from __future__ import annotations

__all__ = ["quote_identifier", "quote_literal"]


def quote_identifier(name: str) -> str:
    """A name as an identifier, with its letters as they are."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """A text as a literal, whatever the server's ``standard_conforming_strings`` is."""
    doubled = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{doubled}'"
