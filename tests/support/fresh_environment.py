"""Virtual environments with distributions from their wheels: without the clone, and without fetching anything."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from tests.support.distributions import CORE, DISTRIBUTIONS, ROOT

__all__ = [
    "ROOT",
    "build",
    "built_distributions",
    "environment_with_pip",
    "fresh_environment",
    "install_projects",
    "of_core",
    "offline_pythons",
    "run_program",
    "write_pip",
]

_PROGRAMS = Path(sys.executable).parent
#: Plugins of pytest that only the tests of this repository use: every pytest loads them, in half of the time it takes.
_OF_TESTS = ("hypothesis", "pytest_xdist", "schemathesis", "xdist")
#: The environment beside the wheels of a run in which they are compiled.
_COMPILED = "compiled"
#: A test of a plugin, which has the server imported in pytest.
_SERVED = """
def test_served(broker_core_serve):
    broker_core_serve().ask
"""


def run_program(command: Sequence[object], *, cwd: Path) -> str:
    """What a program prints on standard output; an :exc:`AssertionError` with all of it if it fails."""
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


def build(project: Path, into: Path, *targets: str) -> list[Path]:
    """Build ``wheel`` or ``sdist`` of a project with the build backend of the lock; the new files of the folder."""
    before = set(into.iterdir())
    options = [word for target in targets for word in ("-t", target)]
    run_program([sys.executable, "-m", "hatchling", "build", "-d", into, *options], cwd=project)
    return sorted(set(into.iterdir()) - before)


def built_distributions(folder: Path) -> list[Path]:
    """The wheels and the source distributions of this repository; built once, whichever process asks first."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "done"
        if not done.exists():
            for distribution in DISTRIBUTIONS:
                build(distribution.folder, folder, "wheel", "sdist")
            _compile(sorted(folder.glob("*.whl")), folder / _COMPILED)
            done.touch()
    return sorted({*folder.glob("*.whl"), *folder.glob("*.tar.gz")})


def _compile(wheels: Sequence[Path], venv: Path) -> None:
    """An environment in which all is compiled, for Python, and for pytest as it rewrites assertions of a plugin."""
    programs = _empty_environment(venv)
    _install(programs, wheels, "--compile-bytecode")
    test = venv / "test_compiled.py"
    test.write_text(_SERVED, encoding="utf-8")
    run_program([programs / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", test], cwd=venv)


def fresh_environment(folder: Path, wheels: Sequence[Path]) -> Path:
    """A new virtual environment with these wheels, broker-core's among them; its folder of programs.

    What they depend on is taken from the environment that runs the tests, so that nothing is fetched. That one has the
    distributions of this repository too, editable: they are left out.
    """
    folder.mkdir(exist_ok=True)
    programs = _empty_environment(folder / "venv")
    _install(programs, wheels)
    (packages,) = programs.parent.glob("lib/python*/site-packages")
    _check_origins(programs, packages)
    return programs


def offline_pythons(folder: Path) -> None:
    """Write ``python`` and ``python3``, whose ``-m venv`` has the dependencies in it and a pip that fetches nothing.

    So a script that makes an environment, installs what is locked and then wheels runs as it is written.
    """
    for name in ("python", "python3"):
        program = folder / name
        program.write_text(
            f"#!{sys.executable}\n"
            "import os, sys\n"
            "if sys.argv[1:3] != ['-m', 'venv']:\n"
            "    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
            f"sys.path.insert(0, {str(ROOT)!r})\n"
            "from pathlib import Path\n"
            "from tests.support.fresh_environment import environment_with_pip\n"
            "environment_with_pip(Path(sys.argv[3]).absolute())\n",
            encoding="utf-8",
        )
        program.chmod(0o755)


def environment_with_pip(venv: Path) -> Path:
    """A virtual environment with the dependencies alone, and with a pip that fetches nothing; its programs."""
    programs = _empty_environment(venv)
    write_pip(programs)
    return programs


def write_pip(programs: Path, *options: str) -> None:
    """A ``pip`` that finds what is installed, and fetches nothing; with more options of its ``install``.

    It leaves compiling to the programs that are run there: they import a part of what pip would compile.
    """
    pip = programs / "pip"
    pip.write_text(
        f"#!{programs / 'python'}\n"
        f"import runpy, sys; sys.argv[2:2] = {['--no-index', '--no-compile', *options]!r}; "
        "runpy.run_module('pip', run_name='__main__')\n",
        encoding="utf-8",
    )
    pip.chmod(0o755)


def _empty_environment(venv: Path) -> Path:
    run_program([sys.executable, "-m", "venv", "--without-pip", venv], cwd=Path.cwd())
    (packages,) = venv.glob("lib/python*/site-packages")
    dependencies = venv / "dependencies"
    _link_dependencies(dependencies)
    (packages / "dependencies.pth").write_text(f"{dependencies}\n", encoding="utf-8")
    return venv / "bin"


def of_core(wheels: Sequence[Path]) -> Path:
    """The wheel of broker-core among those of this repository."""
    (wheel,) = (path for path in wheels if path.name.startswith(f"{CORE.package}-"))
    return wheel


def install_projects(programs: Path, *projects: Path) -> None:
    """Build the wheels of projects, and install them into the environment of these programs."""
    wheels = programs.parent.parent / "wheels"
    wheels.mkdir(exist_ok=True)
    _install(programs, [wheel for project in projects for wheel in build(project, wheels, "wheel")])


def _install(programs: Path, wheels: Sequence[Path], *options: str) -> None:
    """Install wheels; what is compiled of those of this repository is copied, with the sources of the same times."""
    words = ["--quiet", "--no-config", "--offline", "--no-index", "--no-deps", *options]
    command = [_PROGRAMS / "uv", "pip", "install", *words, "--python", programs / "python", *wheels]
    run_program(command, cwd=programs)
    for wheel in wheels:
        for compiled in (wheel.parent / _COMPILED).glob(f"lib/python*/site-packages/{_package_of(wheel)}"):
            (packages,) = programs.parent.glob("lib/python*/site-packages")
            if compiled.parent != packages:
                shutil.copytree(compiled, packages / compiled.name, dirs_exist_ok=True)


def _package_of(wheel: Path) -> str:
    return wheel.name.partition("-")[0]


def _link_dependencies(into: Path) -> None:
    """Links to all that is installed, but for this repository, what its tests need, and what adds to the path."""
    into.mkdir()
    left_out = (*(distribution.package for distribution in DISTRIBUTIONS), *_OF_TESTS)
    for entry in os.scandir(sysconfig.get_path("purelib")):
        if not entry.name.endswith(".pth") and not entry.name.startswith(left_out):
            (into / entry.name).symlink_to(entry.path)


def _check_origins(programs: Path, packages: Path) -> None:
    """Nothing of broker-core comes from anywhere else than the wheels."""
    code = """if True:
        import sys
        from importlib.util import find_spec
        from importlib.metadata import distributions
        for package in sys.argv[1:]:
            if spec := find_spec(package):
                print(spec.origin)
        for distribution in distributions():
            if distribution.name.startswith("broker-core"):
                print(distribution.locate_file(""))
    """
    names = [distribution.package for distribution in DISTRIBUTIONS]
    origins = run_program([programs / "python", "-c", code, *names], cwd=packages.parent).split()
    assert origins
    assert all(Path(origin).is_relative_to(packages) for origin in origins), origins
