"""The files that a server writes beside its catalogue, of logs and of the shrink guard: whether they can be written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from broker_core.plugin_api import Check

__all__ = ["guard_file_checks", "log_checks"]


def log_checks(name: str, file: Path | None) -> Iterator[Check]:
    """A finding about the file of a setting: whether it can be written, or made. It is not opened."""
    if file is None:
        return
    shown = os.path.abspath(file)  # noqa: PTH100 - without its ".."
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        folder = Path(os.path.realpath(file)).parent  # of the target of a link that leads nowhere
        if not folder.is_dir():
            yield Check.error(name, f"{shown}: there is no folder {folder}")
        elif not os.access(folder, os.W_OK | os.X_OK):
            yield Check.error(name, f"{shown}: this user cannot make a file in {folder}")
        else:
            yield Check.ok(name, f"{shown} is not there: the server makes it")
        return
    except OSError as error:
        yield Check.error(name, f"{shown}: {(error.strerror or str(error)).lower()}")
        return
    if stat.S_ISDIR(mode) or stat.S_ISSOCK(mode):
        yield Check.error(name, f"{shown} is a {'folder' if stat.S_ISDIR(mode) else 'socket'}, not a file")
    elif not os.access(file, os.W_OK):
        yield Check.error(name, f"{shown} cannot be written by this user")
    else:
        yield Check.ok(name, f"{shown} can be written")


def guard_file_checks(file: Path | None) -> Iterator[Check]:
    """A finding about ``shrink_guard.file``. Without the file the server runs, and forgets what it held at its end."""
    if file is None:
        return
    from broker_core.guards import file_problem

    path = Path(os.path.abspath(file))  # noqa: PTH100 - without its ".."
    problem = file_problem(path)
    if problem is None:
        yield Check.ok("shrink_guard.file", f"{path} can be written")
    else:
        yield Check.warning("shrink_guard.file", f"{problem}: the guard forgets everything at a restart")
