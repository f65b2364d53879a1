from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import broker_core
from broker_core.cli import main
from broker_core.cli.early_signals import restore_signals

COMMAND = Path(sys.executable).parent / "broker-core"


def test_main_leaves_with_the_code_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["broker-core", "nope"])
    try:
        with pytest.raises(SystemExit) as left:
            main()
    finally:
        restore_signals()  # no command began, and that of a later test may begin in another thread
    assert left.value.code == 2
    assert "nope" in capsys.readouterr().err


def test_it_is_a_module_too() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "broker_core.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout == f"broker-core {broker_core.__version__}\n"


@pytest.mark.skipif(not COMMAND.exists(), reason="broker-core is not installed in this environment")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    words = {"COMP_WORDS": "broker-core ", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "broker-core "}
    environment = {**os.environ, **words, "_BROKER_CORE_COMPLETE": f"complete_{shell}"}
    if shell == "fish":
        environment["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    said = subprocess.run([COMMAND], env=environment, capture_output=True, text=True, check=False)
    assert "serve" in said.stdout
    assert "topics" in said.stdout
