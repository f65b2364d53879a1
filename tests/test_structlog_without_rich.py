"""structlog without rich in processes of `broker-core`, while everything else has rich."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
from broker_core.structlog_without_rich import keep_rich_out_of_structlog
keep_rich_out_of_structlog()
import structlog
assert not [name for name in sys.modules if name.partition(".")[0] in ("rich", "pygments")]
assert not [finder for finder in sys.meta_path if type(finder).__name__ == "_StructlogFinder"]
assert structlog.__spec__.loader is structlog.__loader__
assert type(structlog.__loader__) is type(sys.modules["broker_core"].__loader__)
renderer = structlog.dev.ConsoleRenderer(colors=False)
try:
    raise ValueError("the text of an error")
except ValueError:
    assert "ValueError: the text of an error" in renderer(None, "error", {"event": "e", "exc_info": True})
import rich.console
assert rich.console.Console
"""


def test_structlog_works_and_rich_can_be_imported_afterwards() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True)


def test_a_server_has_neither() -> None:
    program = """
import atexit, sys
loaded = lambda: print(sorted({"rich", "structlog"} & set(sys.modules)))
atexit.register(loaded)
sys.argv = ["broker-core", "catalog", "--help"]
from broker_core.cli import main
import broker_core.cli.command_tree as tree
tree.run = lambda arguments: __import__("structlog") and 0
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['structlog']\n"
