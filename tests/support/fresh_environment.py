"""An environment as after a `pip install` of wheels, without fetching anything."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ROOT", "fresh_environment", "install_wheels", "run_program"]

ROOT = Path(__file__).parent.parent.parent


def run_program(command: Sequence[object], *, cwd: Path) -> str:
    """What a program prints on standard output; an :exc:`AssertionError` with all of it where it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def fresh_environment(folder: Path, *projects: Path) -> Path:
    """A new virtual environment with broker-core and the ``projects``, installed from wheels; its ``bin`` folder.

    What they depend on is taken from the environment that runs the tests, so that nothing is fetched: a ``.pth`` file
    puts its packages behind the fresh ones (the ``.pth`` files in there, such as that of an editable install, do not
    count then).
    """
    venv = folder / "venv"
    run_program([sys.executable, "-m", "venv", "--without-pip", venv], cwd=folder)
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    programs = venv / "bin"
    install_wheels(programs, ROOT, *projects)
    where = run_program(
        [programs / "python", "-c", "import broker_core; print(broker_core.__file__)"], cwd=folder
    )
    assert Path(where.strip()).is_relative_to(packages), "broker_core is not the one of the wheel"
    return programs


def install_wheels(programs: Path, *projects: Path) -> None:
    """Build the wheels of ``projects``, and install them into the environment of these programs."""
    wheels = programs.parent.parent / "wheels"
    wheels.mkdir(exist_ok=True)
    built = [_build(project, wheels) for project in projects]
    uv = Path(sys.executable).parent / "uv"
    options = ["--quiet", "--no-config", "--offline", "--no-index", "--no-deps"]
    run_program([uv, "pip", "install", *options, "--python", programs / "python", *built], cwd=wheels)


def _build(project: Path, into: Path) -> Path:
    before = set(into.glob("*.whl"))
    run_program([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", into], cwd=project)
    (wheel,) = set(into.glob("*.whl")) - before
    return wheel
