"""Builds the programs in Go, each once: the official client, Prometheus. Their modules come from Go's module proxy."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from tests.interop.maven import CACHE, PeerUnavailable

__all__ = ["go_consumers", "go_promql"]

_HERE = Path(__file__).resolve().parent
#: The first build fetches and compiles some hundred packages.
_BUILD_SECONDS = 600
#: What the tool says where the proxy cannot be reached, as opposed to where our sources are wrong.
_UNREACHABLE = re.compile(
    r"dial tcp|no such host|i/o timeout|connection refused|unexpected EOF|TLS handshake|GOPROXY list is",
    re.IGNORECASE,
)
_OLDEST = (1, 24)


def go_consumers() -> Path:
    """The program with the official client.

    Raises :exc:`PeerUnavailable` if there is no Go 1.24 or later, or no way to its modules.
    """
    return _program("go-consumers", _HERE / "go")


def go_promql() -> Path:
    """The program that evaluates PromQL by Prometheus itself. Raises :exc:`PeerUnavailable` as well."""
    return _program("go-promql", _HERE / "prometheus")


def _program(name: str, folder: Path) -> Path:
    _require_go()
    sources = sorted(path for path in folder.iterdir() if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    CACHE.mkdir(parents=True, exist_ok=True)
    program = CACHE / f"{name}-{digest}"
    with (CACHE / "go-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _build(program, folder)
    return program


def _require_go() -> None:
    go = shutil.which("go")
    if go is None:
        raise PeerUnavailable("the programs in Go need Go 1.24 or later: there is no `go`")
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout.strip()
    found = re.search(r"go(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        raise PeerUnavailable(f"the programs in Go need Go 1.24 or later: `go version` says {said}")


def _build(program: Path, folder: Path) -> None:
    fresh = program.with_suffix(".building")
    try:
        done = subprocess.run(
            ["go", "build", "-buildvcs=false", "-o", str(fresh), "."],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise PeerUnavailable(f"{program.name} was not built within {_BUILD_SECONDS} s") from None
    if done.returncode == 0:
        fresh.rename(program)
        return
    said = done.stdout + done.stderr
    if _UNREACHABLE.search(said):
        first = next((line for line in said.splitlines() if _UNREACHABLE.search(line)), said[:200])
        raise PeerUnavailable(f"Go's module proxy cannot be reached: {first[:200]}")
    raise RuntimeError(f"go build failed in {folder}:\n{said}")
