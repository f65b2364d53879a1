"""An early signal ends the process with one line, but SIGHUP no server; one in a command does what it did."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker_core.cli.early_signals import end_by_early_signals, restore_signals
from tests.support.eventually import eventually_sync
from tests.support.files import file_with
from tests.support.narrowed import present

#: Sends itself the signal of its first argument when `typer` is imported.
SIGNALLED = """
import os, signal, sys
NUMBER = int(sys.argv.pop(1))
if signal.getsignal(NUMBER) is signal.SIG_IGN:  # as nohup and shells without job control leave it
    signal.signal(NUMBER, signal.SIG_DFL)

class Signals:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), NUMBER)

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


def test_a_hangup_reloads_a_server_once_it_is_ready_and_ends_any_other_command(tmp_path: Path) -> None:
    config = file_with(tmp_path / "f.toml", '[pulsar]\nlisten = "127.0.0.1:0"\n[log]\nfile = "log"\n')
    command = [sys.executable, "-c", SIGNALLED, str(int(signal.SIGHUP))]
    assert subprocess.run([*command, "topics", "show", "serve"], check=False).returncode == -signal.SIGHUP
    with subprocess.Popen(
        [*command, "serve", "--config", str(config)], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert present(server.stdout).readline().startswith("ready ")
            log = tmp_path / "log"
            eventually_sync(lambda: '"reloaded":["settings"' in log.read_text(), what="the reload")
        finally:
            server.terminate()
    assert server.returncode == 0


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
