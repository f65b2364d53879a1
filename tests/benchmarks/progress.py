"""Progress of a benchmark on standard error, beside its result."""

from __future__ import annotations

import sys
import time

__all__ = ["say"]


def say(what: str) -> None:
    """A line with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
