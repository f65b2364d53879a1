"""Finding the Java for Spark: a JRE 17 or 21.

Spark takes the first ``java`` of the path, and the errors of a JVM that is too new help nobody. So the version is
looked at before the start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker_core.errors import BrokerCoreError

__all__ = ["VERSIONS", "JavaMissing", "find_java_home"]

#: Java releases that Spark 4 supports and the tests use.
VERSIONS: Final = (17, 21)
_WANTED: Final = f"Spark runs on {' or '.join(f'Java {version}' for version in VERSIONS)}"
_ADVICE: Final = (
    "Install one (Debian, Ubuntu: apt install openjdk-17-jre-headless; Fedora: dnf install "
    "java-21-openjdk-headless; macOS: brew install openjdk@17) or set JAVA_HOME to one."
)
_HOMES: Final = Path("/usr/lib/jvm")
_TIMEOUT: Final = 30  # seconds: the first start of a JVM from a cold disk


class JavaMissing(BrokerCoreError):
    """No suitable Java. The message says what was found and what to install."""


def find_java_home() -> Path:
    """The home of a Java 17 or 21: ``$JAVA_HOME``, that of ``java`` on the path, or one below ``/usr/lib/jvm``.

    Another version in ``$JAVA_HOME`` is an error: whoever set it means it. Raises :exc:`JavaMissing`.
    """
    named = os.environ.get("JAVA_HOME")
    others: dict[Path, int] = {}
    for home in [Path(named)] if named else _homes():
        version = _version(home)
        if version in VERSIONS:
            return home
        if version:
            others[home] = version
    if named:
        found = [f"Java {version}" for version in others.values()] or ["no Java"]
        raise JavaMissing(f"JAVA_HOME is {named}, which is {found[0]}: {_WANTED}. {_ADVICE}")
    seen = ", ".join(f"Java {version} in {home}" for home, version in others.items())
    raise JavaMissing(f"{_WANTED}, and {f'found only {seen}' if seen else 'there is none'}. {_ADVICE}")


def _homes() -> Iterator[Path]:
    found = shutil.which("java")
    if found:
        yield Path(found).resolve().parent.parent
    for name in (*(f"*{version}*" for version in VERSIONS), "*"):
        yield from sorted(_HOMES.glob(name))


def _version(home: Path) -> int | None:
    """The release of the Java in a folder, by its own output."""
    try:
        done = subprocess.run(  # noqa: S603 - the Java of this machine
            [str(home / "bin" / "java"), "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = re.search(r'version "(\d+)', done.stderr + done.stdout)
    return int(said[1]) if said else None
