"""A folder as a read-only mount of it shows it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["mounted_read_only"]


@contextmanager
def mounted_read_only(folder: Path) -> Iterator[Path]:
    """A view of ``folder`` to read, not to write. Skips the test if this user may mount nothing."""
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            ["mount", "--bind", "-o", "ro", folder, place], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"a read-only mount cannot be had: {done.stderr.strip()}")
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", "-l", place], check=True)
