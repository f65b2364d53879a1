"""Progress bars of mirrors, for terminals only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from broker_core.quantities import counted

__all__ = ["MirrorProgress", "mirror_progress"]


class MirrorProgress(NamedTuple):
    """Callbacks that draw, ``None`` without a terminal.

    ``read`` is called with (namespaces read, namespaces in all, listed names so far), ``write`` with (namespaces
    written, differing namespaces).
    """

    read: Callable[[int, int, int], None] | None = None
    write: Callable[[int, int], None] | None = None


@contextmanager
def mirror_progress() -> Iterator[MirrorProgress]:
    """Draw bars on standard error, if it is a terminal."""
    if not sys.stderr.isatty():
        yield MirrorProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bars:
        reading = bars.add_task("reading namespaces", total=None)
        writing = bars.add_task("writing namespaces", total=None, start=False, visible=False)

        def read(done: int, total: int, names: int) -> None:
            description = f"reading namespaces ({counted(names, 'name')})"
            bars.update(reading, completed=done, total=total, description=description)

        def write(done: int, total: int) -> None:
            if not bars.tasks[writing].started:
                bars.start_task(writing)
            bars.update(writing, completed=done, total=total, visible=True)

        yield MirrorProgress(read, write)
