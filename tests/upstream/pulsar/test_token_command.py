"""The command that prints a token: what it may do wrong, and that nothing of it stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from broker_core.client import CredentialsFailed
from broker_core.upstream.pulsar.token_command import run_token_command
from tests.support.eventually import eventually_sync


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_what_it_prints_is_the_token() -> None:
    assert run_token_command(python("print('  eyJtoken ')"), timeout=60) == b"eyJtoken"


def test_no_shell_sees_the_words() -> None:
    assert run_token_command(["echo", "$HOME;", "*"], timeout=60) == b"$HOME; *"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["/does/not/exist"], "cannot run '/does/not/exist': No such file or directory"),
        (["a\0b"], "it is no command"),
        (python("print('secret'); raise SystemExit(3)"), "ended with status 3"),
        (python(""), "printed nothing"),
        (python("print('secret' * 300_000)"), "printed more than 1048576 bytes"),
    ],
)
def test_what_goes_wrong_is_said_without_its_output(words: list[str], reason: str) -> None:
    with pytest.raises(CredentialsFailed, match=reason) as failed:
        run_token_command(words, timeout=60)
    assert "secret" not in str(failed.value).replace("'secret'", "")


def test_all_that_it_started_is_killed_in_time(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    # Its child keeps the output open, which the death of the command alone would not end.
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(told)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(CredentialsFailed, match="did not come to its end within 1"):
        run_token_command(python(code), timeout=1.0)
    if not told.exists():  # a machine that takes a second to begin with it
        return
    child = int(told.read_text())
    eventually_sync(lambda: not _runs(child), what="the child is gone")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
