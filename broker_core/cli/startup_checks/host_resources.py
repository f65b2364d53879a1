"""Limits of open files and memory of the machine, or the container."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_core.plugin_api import Check
from broker_core.servers.admission import FileBudget

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = ["host_checks"]

#: Open files of a server with many clients.
_FEW_FILES: Final = 4096


def host_checks(settings: Settings) -> Iterator[Check]:
    """Findings about the limits of the machine, or the container."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _FEW_FILES:
        yield Check.warning(
            "files",
            f"the process may open {hard} files, and every client is one: raise LimitNOFILE or ulimit -n",
        )
    else:
        yield Check.ok("files", "no limit" if hard == resource.RLIM_INFINITY else f"up to {hard}")
    limits = settings.limits
    room = FileBudget.of_server().clients
    if limits.connections != "auto" and limits.connections > room:
        yield Check.warning(
            "limits.connections",
            f"{limits.connections} is more than the limit of open files has room for ({room}): raise LimitNOFILE or "
            "ulimit -n",
        )
    budget = limits.heap_permits + limits.direct_permits + limits.snapshots
    memory = _memory()
    if memory is None:
        return
    sizes = f"{budget / 2**20:,.0f} MiB of permits and snapshots, {memory / 2**20:,.0f} MiB of memory"
    if budget > memory:
        yield Check.warning("memory", f"{sizes}: the system ends the process before a limit refuses anything")
    else:
        yield Check.ok("memory", sizes)


def _memory() -> int | None:
    """Bytes of memory that this process may have: the machine's, or its control group's."""
    found = []
    try:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (OSError, ValueError):
        pass
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            found.append(int(Path(file).read_text(encoding="ascii")))
        except (OSError, ValueError):  # none, or "max"
            continue
    return min(found, default=None)
