"""Keeping pandas out of a process that uses Arrow.

Arrow imports pandas, where it is installed, when the first array is made of Python objects. That takes half a second
and tens of megabytes, which a server never uses. :func:`make_the_first_array` makes an array while pandas cannot be
found. Arrow looks for pandas again when a program asks for it (``to_pandas()``), so it is there for them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

__all__ = ["make_the_first_array"]


class _NoPandas:
    """A finder that finds nothing, and lets nothing else find pandas."""

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not imported by the first array", name=name)
        return None


def make_the_first_array() -> None:
    """Make an Arrow value while pandas cannot be found; for the module whose arrays are the first."""
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.scalar("")
    finally:
        sys.meta_path.remove(finder)
