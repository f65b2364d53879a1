"""A file system of a few megabytes, for tests of what a full disk does."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["grow", "small_disk"]


@contextmanager
def small_disk(folder: Path, size: str, *, like: Path | None = None) -> Iterator[None]:
    """``folder``, which is made for this, is a file system of its own of so many bytes (``"2m"``) in the block.

    It has the owner of ``like``. The test is skipped if nothing can be mounted.
    """
    folder.mkdir()
    owner = (like or folder).stat()
    options = f"size={size},mode=700,uid={owner.st_uid},gid={owner.st_gid}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        folder.rmdir()
        pytest.skip(f"a disk of {size} cannot be made here: mounting a tmpfs takes root and CAP_SYS_ADMIN")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def grow(folder: Path, size: str) -> None:
    """Give a file system of :func:`small_disk` more bytes."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)
