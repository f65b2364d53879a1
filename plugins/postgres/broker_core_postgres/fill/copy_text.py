"""Names in the text format of COPY."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["escape_names"]


def escape_names(names: Sequence[str]) -> Sequence[str]:
    """Escape names for COPY, in one pass: no name has a NUL, which joins them."""
    text = "\0".join(names)
    if not any(special in text for special in "\\\t\n\r"):
        return names
    for special, written in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(special, written)
    return text.split("\0")
