"""Programs in environments of their own: Python distributions by hash, modules of npm, and kcat."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.interop.maven import CACHE, PeerUnavailable

__all__ = ["kcat", "librdkafka", "node_modules", "packages_of", "python_of"]

_SECONDS: Final = 300


def python_of(requirements: Path) -> Path:
    """The interpreter of a virtual environment with these requirements, by hash; made if it is not there yet.

    Raises :exc:`PeerUnavailable` if they are not available.
    """
    uv = str(Path(sys.executable).parent / "uv")

    def make(folder: Path) -> None:
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], folder.parent)
        install = [uv, "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
        _run([*install, "--python", str(folder), "-r", str(requirements)], folder.parent)

    return _made("python", [requirements], make) / "bin" / "python"


def packages_of(requirements: Path) -> Path:
    """A folder with these requirements, by hash, for the path of this Python; without what they require themselves.

    Raises :exc:`PeerUnavailable` if they are not available.
    """
    uv = str(Path(sys.executable).parent / "uv")

    def make(folder: Path) -> None:
        install = [uv, "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--target", str(folder)]
        _run([*install, "--python", sys.executable, "-r", str(requirements)], folder.parent)

    return _made("packages", [requirements], make)


def node_modules(package: Path) -> Path:
    """A folder with a copy of ``package`` (package.json and its lock) and its modules.

    Raises :exc:`PeerUnavailable` if there is no Node.js 20, no npm, or no way to its registry.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise PeerUnavailable("the clients in JavaScript need Node.js 20 or later and npm: there is none")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    if int(version.lstrip("v").partition(".")[0] or 0) < 20:
        raise PeerUnavailable(f"the clients in JavaScript need Node.js 20 or later: this is {version}")
    files = [package / "package.json", package / "package-lock.json"]

    def make(folder: Path) -> None:
        folder.mkdir()
        for file in files:
            shutil.copy(file, folder)
        _run([npm, "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], folder)

    return _made("node", files, make)


def kcat() -> str:
    """The program kcat. Raises :exc:`PeerUnavailable` if it is not installed."""
    found = shutil.which("kcat") or shutil.which("kafkacat")
    if found is None:
        raise PeerUnavailable("kcat is not installed (Debian: apt install kcat)")
    return found


def librdkafka(program: str) -> tuple[int, ...]:
    """The version of the library of kcat."""
    said = subprocess.run([program, "-V"], capture_output=True, text=True, check=False)
    found = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", said.stdout + said.stderr)
    assert found is not None, said
    return tuple(map(int, found.groups()))


def _made(kind: str, sources: list[Path], make: Callable[[Path], None]) -> Path:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    folder = CACHE / f"{kind}-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{kind}-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "made"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            done.touch()
    return folder


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise PeerUnavailable(
            f"{Path(command[0]).name} did not fetch the clients within {_SECONDS} s"
        ) from None
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())[:200]
        raise PeerUnavailable(f"{Path(command[0]).name} could not fetch the clients: {said}")
