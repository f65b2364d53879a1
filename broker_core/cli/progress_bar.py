"""A progress bar for imports, on a terminal only."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Literal

from broker_core.counted import counted

__all__ = ["import_progress"]


@contextmanager
def import_progress(source: BinaryIO) -> Iterator[Callable[[Literal["read", "write"], int], None] | None]:
    """The callback for :func:`~broker_core.catalog.import_topics`, ``None`` if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        reading = bar.add_task("reading", total=_size(source))
        writing = bar.add_task("writing", total=None, start=False, visible=False)

        def progress(phase: Literal["read", "write"], amount: int) -> None:
            if phase == "read":
                bar.update(reading, completed=amount)
            elif not bar.tasks[writing].started:
                bar.update(reading, visible=False)
                bar.update(writing, visible=True, description=f"writing {counted(amount, 'topic')}")
                bar.start_task(writing)

        yield progress


def _size(source: BinaryIO) -> int | None:
    """Bytes of a file; ``None`` for a pipe, whose size is unknown."""
    try:
        status = os.fstat(source.fileno())
    except OSError:  # no file at all
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
