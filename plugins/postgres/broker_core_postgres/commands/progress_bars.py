"""Progress bars of mirrors, for terminals only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from broker_core.quantities import counted

__all__ = ["MirrorProgress", "mirror_progress"]


class MirrorProgress:
    """Callbacks without effect; :func:`mirror_progress` gives ones that draw, on a terminal."""

    def read(self, done: int, total: int, names: int) -> None:
        """``done`` of ``total`` namespaces are read, with ``names`` listed names so far."""

    def write(self, done: int, total: int) -> None:
        """``done`` of ``total`` differing namespaces are written."""


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

        class Drawn(MirrorProgress):
            def read(self, done: int, total: int, names: int) -> None:
                bars.update(
                    reading,
                    completed=done,
                    total=total,
                    description=f"reading namespaces ({counted(names, 'name')})",
                )

            def write(self, done: int, total: int) -> None:
                if not bars.tasks[writing].started:
                    bars.start_task(writing)
                bars.update(writing, completed=done, total=total, visible=True)

        yield Drawn()
