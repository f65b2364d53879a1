"""Programs on this machine for tests: a PostgreSQL server, and a Java that Spark runs on.

``python -m tests.support.machine postgres|java`` prints the folder, or says what is missing and ends with 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["java_home", "postgres_programs"]

#: The versions that are supported and tested.
OLDEST_POSTGRES = 14
JAVA = (17, 21)


def postgres_programs() -> Path | None:
    """The folder with ``initdb``, ``pg_ctl`` and ``postgres`` of the newest server here; ``None`` without one."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version_of, reverse=True)
    found = shutil.which("initdb")
    if found:
        folders.append(Path(found).resolve().parent)
    for folder in folders:
        if all((folder / program).is_file() for program in ("initdb", "pg_ctl", "postgres")):
            said = _said(str(folder / "postgres"), "--version")
            version = re.search(r"\) (\d+)", said)
            if version and int(version[1]) >= OLDEST_POSTGRES:
                return folder
    return None


def java_home() -> Path | None:
    """The home of a Java 17 or 21: ``$JAVA_HOME``, that of ``java`` on the path, or one that Debian installed."""
    for home in _homes():
        said = _said(str(home / "bin" / "java"), "-version")
        version = re.search(r'version "(\d+)', said)
        if version and int(version[1]) in JAVA:
            return home
    return None


def _homes() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    found = shutil.which("java")
    if found:
        yield Path(found).resolve().parent.parent
    for version in JAVA:
        yield from sorted(Path("/usr/lib/jvm").glob(f"*{version}*"))


def _version_of(folder: Path) -> int:
    name = folder.parent.name
    return int(name) if name.isdigit() else 0


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout + done.stderr


if __name__ == "__main__":
    place = {"postgres": postgres_programs, "java": java_home}[sys.argv[1]]()
    if place is None:
        sys.exit(f"no {sys.argv[1]} found")
    print(place)
