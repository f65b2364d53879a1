"""What the processes of a run share: the programs that are forked, a cluster of PostgreSQL, the distributions.

Collecting all tests takes ten seconds of one processor. In a run of all of them another one makes meanwhile what many
files wait for later.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.support.distributions import ROOT
from tests.support.forked_programs import start_programs
from tests.support.postgres_server import make_new_cluster, share_new_cluster

__all__ = ["StartBesideCollection", "start_shared"]

_BUILD: Final = """
import sys
from pathlib import Path
from tests.support.fresh_environment import built_distributions
built_distributions(Path(sys.argv[1]))
"""


def start_shared() -> None:
    """Start the server of programs that are forked and the owner of the cluster, before processes are forked."""
    start_programs()
    share_new_cluster()


class StartBesideCollection:
    """All of it, from now on; ``distributions`` is the folder in which the fixture of that name looks for them."""

    def __init__(self, distributions: Path) -> None:
        # On its own: the tests that need them wait for its lock. If it fails, the first of them builds them again, and
        # says why.
        self._builder = subprocess.Popen(
            [sys.executable, "-c", _BUILD, distributions],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._thread = ThreadPoolExecutor(1, "shared-start")
        self._started = self._thread.submit(self._start)

    def _start(self) -> None:
        start_shared()
        make_new_cluster()

    def join_thread(self) -> None:
        """Wait for what is to be there before processes are forked, none of which would have the thread."""
        with self._thread:
            self._started.result()

    def close(self) -> None:
        """Wait for the builder, which a short run may outrun."""
        self._builder.wait()
