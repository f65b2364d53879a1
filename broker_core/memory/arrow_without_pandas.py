"""Keeping pandas out of the processes of `broker-core`, which use Arrow.

Arrow imports pandas, if it is installed, when it makes the first array of Python objects. That takes half a second
and tens of megabytes, which a server never uses. :func:`make_the_first_array` makes one while pandas cannot be found.
Arrow looks for pandas again when a program asks for it (``to_pandas()``).

But from then on it does not treat ``pandas.NA`` and ``pandas.NaT`` as nulls. So this is only for processes of
`broker-core`, not for programs that import this package, not for commands of plugins, and not if a plugin requires
pandas.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

__all__ = ["keep_pandas_out", "let_pandas_in", "make_the_first_array"]

#: The entry point group of plugins has the name of the package.
_PLUGINS: Final = __name__.partition(".")[0]

_kept_out = False


def keep_pandas_out() -> None:
    """Keep pandas out of Arrow, in a process of `broker-core`; to be called before Arrow is imported."""
    global _kept_out  # noqa: PLW0603 - of the process
    _kept_out = True


def let_pandas_in() -> None:
    """Let Arrow import pandas as usual, if it has made no array so far."""
    global _kept_out  # noqa: PLW0603 - of the process
    _kept_out = False


class _NoPandas:
    """A finder that finds nothing, and lets nothing else find pandas."""

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not imported by the first array", name=name)
        return None


def make_the_first_array() -> None:
    """Make an Arrow value while pandas cannot be found, if it is kept out; for the first module to need Arrow."""
    if not _kept_out or "pandas" in sys.modules or _a_plugin_requires_it():
        return
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([""])
    finally:
        sys.meta_path.remove(finder)


def _a_plugin_requires_it() -> bool:
    """Whether the distribution of an installed plugin requires pandas, not only in an extra."""
    from importlib.metadata import entry_points

    return any(
        re.match(r"pandas\b(?![-_.])", requirement, re.IGNORECASE) and "extra" not in requirement
        for entry in entry_points(group=_PLUGINS)
        if entry.dist is not None
        for requirement in entry.dist.requires or ()
    )
