"""Files that a test writes for what it looks at."""

from __future__ import annotations

from pathlib import Path

__all__ = ["file_with"]


def file_with(path: Path, content: str | bytes) -> Path:
    """The path of a file that has this content; text is UTF-8."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
