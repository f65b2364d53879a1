"""A signal in the midst of the imports ends the process with one line, and one in a command does what it did."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from broker_core.cli.early_signals import end_by_early_signals, restore_signals

#: Sends itself the signal of its argument when `typer` is imported.
SIGNALLED = """
import os, sys

class Signals:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Signals())
from broker_core.cli import main
main()
"""


def test_the_line_and_the_code() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        ended = subprocess.run(
            [sys.executable, "-c", SIGNALLED, str(int(number))], capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stdout) == (128 + number, "")
        assert ended.stderr == f"broker-core: ended by {number.name}\n"


@pytest.mark.parametrize("ignored", [False, True])
def test_a_command_has_the_handlers_of_before(ignored: bool) -> None:
    number = signal.SIGTERM
    handler = signal.SIG_IGN if ignored else signal.SIG_DFL
    before = signal.signal(number, handler)
    try:
        end_by_early_signals()
        assert (signal.getsignal(number) == handler) is ignored
        restore_signals()
        assert signal.getsignal(number) == handler
        restore_signals()
        assert signal.getsignal(number) == handler
    finally:
        restore_signals()
        signal.signal(number, before)
