from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.distributions import ROOT

_CONFTEST = """
import sys
sys.path.insert(0, {root!r})
from tests.support.forked_run import ForkedRun

def pytest_configure(config):
    config.pluginmanager.register(ForkedRun(2))
"""
_FILES = {
    "one": """
import os, pytest, warnings

def test_passes(tmp_path):
    print("nothing of this is shown")
    assert tmp_path.is_dir()

def test_fails():
    print("said before it failed")
    assert 1 + 1 == 3

def test_dies():
    os._exit(7)

def test_after_the_death():
    warnings.warn("a word of warning")

@pytest.mark.skip
def test_skipped():
    pass
""",
    "two": """
import pytest

@pytest.fixture(scope="session", autouse=True)
def ends():
    yield
    raise ValueError("at the end of the process")

@pytest.mark.parametrize("number", range(3))
def test_of_another_file(number):
    pass
""",
}


def _run(folder: Path, files: dict[str, str], *options: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(_CONFTEST.format(root=str(ROOT)))
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-rfEs", "-p", "no:cacheprovider", *options]
    # Plugins that are installed would take most of the time.
    variables = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=variables)
    assert not done.stderr
    return done.returncode, done.stdout


def test_what_happens_in_processes_is_reported_as_if_it_were_one(tmp_path: Path) -> None:
    code, said = _run(tmp_path, _FILES)
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 5 passed, 1 skipped, 1 warning, 1 error" in said
    assert "assert (1 + 1) == 3" in said
    assert "said before it failed" in said
    assert "nothing of this is shown" not in said
    assert "FAILED test_one.py::test_dies - the process of this test ended with 7" in said
    assert "UserWarning: a word of warning" in said
    assert "ValueError: at the end of the process" in said


def test_no_further_test_is_run_after_the_failures_that_are_enough(tmp_path: Path) -> None:
    files = {"one": "def test_fails():\n    assert not 1\n\ndef test_next():\n    pass\n"}
    code, said = _run(tmp_path, files, "-x")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "1 failed in" in said
    assert "stopping after 1 failures" in said
