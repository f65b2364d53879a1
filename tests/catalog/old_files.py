"""Catalogue files of earlier releases, made by the code of those releases, for tests of upgrades.

Each has the topics ``orders`` (three partitions, region eu), ``payments`` (region us) and the non-persistent
``metrics`` of ``public/default``, at version 6, of which one made a topic and the next one deleted it; and
one of ``public/other``.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

__all__ = ["OLD_FILES", "old_file"]

#: Name to the format, as ``user_version`` says it.
OLD_FILES: Final = {"format-1-unstamped": 1, "format-1-stamped": 1, "format-2": 2}


def old_file(name: str, path: Path) -> Path:
    """Put one of them at ``path``."""
    source = Path(__file__).parent / "old" / f"{name}.sqlite.gz"
    path.write_bytes(gzip.decompress(source.read_bytes()))
    return path
