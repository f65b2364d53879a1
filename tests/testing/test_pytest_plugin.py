"""The fixtures that every pytest finds if broker-core is installed, as an author of a plugin sees them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from broker_core.testing import BlockingServer

PREFIX = "persistent://public/default/"


def test_the_fixture_serves(broker_core_serve: Callable[..., BlockingServer]) -> None:
    first = broker_core_serve(topics=[PREFIX + "a"])
    second = broker_core_serve(topics=[PREFIX + "b"])
    assert first.list("public/default").topics == [PREFIX + "a"]
    assert second.list("public/default").topics == [PREFIX + "b"]


def test_it_is_found_by_its_entry_point() -> None:
    (point,) = entry_points(group="pytest11", name="broker_core")
    assert point.value == "broker_core.testing.pytest_plugin"


def test_a_project_of_its_own_needs_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "def test_mine(broker_core_serve):\n"
        f"    assert len(broker_core_serve(topics=['{PREFIX}a']).list('public/default')) == 1\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            *("-p", "no:asyncio"),
            *("-p", "no:cacheprovider"),
            *("-p", "no:schemathesis"),  # it is imported for a second
            "-W",
            "error",
            "test_mine.py",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_it_imports_nothing_of_the_server_before_it_is_used() -> None:
    code = (
        "import sys, broker_core.testing.pytest_plugin; "
        "print([name for name in sys.modules if name.startswith(('pyarrow', 'aiohttp', 'broker_core.broker'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
