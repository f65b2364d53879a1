"""Jars of real brokers and of their clients in Java: downloaded from Maven Central, once, as a pom.xml names them."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["CACHE", "PeerUnavailable", "jars_of"]

#: What the tests and the benchmarks download, kept out of git: 243 MB of a Pulsar broker, 82 MB of its tool, 55 MB of a
#: Kafka broker with its tools, and some more.
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "pulsar-peer"

_FETCH_SECONDS = 900
#: What Maven says where the repository cannot be reached, as opposed to where our pom.xml is wrong.
_UNREACHABLE = re.compile(
    r"Unknown host|Name or service not known|Temporary failure in name resolution|Connection (refused|timed out|reset)"
    r"|Network is unreachable|No route to host|Could not transfer artifact|in offline mode|timed out",
    re.IGNORECASE,
)


class PeerUnavailable(Exception):
    """This machine cannot run a real broker or client; the message is one line that says what is missing."""


@cache
def jars_of(pom: Path) -> Path:
    """The folder of the jars that a pom.xml depends on, fetched by Maven when it is not there yet.

    Raises :exc:`PeerUnavailable` if there is no JDK 17 or later, no Maven, or no way to Maven Central.
    """
    _require_jdk()
    # A changed pom.xml is another set of jars: an old cache is never mixed with it.
    lib = CACHE / hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:  # tests and benchmarks may start at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not lib.is_dir():
            _fetch(pom, lib)
    return lib


def _require_jdk() -> None:
    java = shutil.which("java")
    if java is None:
        raise PeerUnavailable(
            "real brokers and clients in Java need a JDK of version 17 or later: there is no `java`"
        )
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found.group(1)) < 17:
        first = said.splitlines()[0] if said else "nothing"
        raise PeerUnavailable(
            f"real brokers and clients in Java need a JDK of version 17 or later: `java -version` says {first}"
        )
    # A JRE cannot compile the source files that are run as they are.
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=False).stdout
    if "jdk.compiler" not in modules:
        raise PeerUnavailable(
            "real brokers and clients in Java need a JDK of version 17 or later: this `java` is a JRE only"
        )


def _fetch(pom: Path, lib: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise PeerUnavailable("the jars of real brokers are fetched by Maven: there is no `mvn`")
    fresh = lib.with_name(lib.name + ".fetching")
    shutil.rmtree(fresh, ignore_errors=True)
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={fresh}", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_FETCH_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise PeerUnavailable(f"Maven Central did not give the jars within {_FETCH_SECONDS} s") from None
    if done.returncode == 0:
        fresh.rename(lib)
        return
    said = done.stdout + done.stderr
    if _UNREACHABLE.search(said):
        first = next((line for line in said.splitlines() if _UNREACHABLE.search(line)), said[:200])
        raise PeerUnavailable(f"Maven Central cannot be reached for the jars of real brokers: {first[:200]}")
    raise RuntimeError(f"Maven could not resolve {pom}:\n{said}")
