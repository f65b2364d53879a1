"""Programs on this machine for tests: a PostgreSQL server, a Java that Spark runs on, browsers, and nginx.

``python -m tests.support.machine postgres|java|chromium|firefox|nginx`` prints where it is, or says what is
missing and ends with 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["chromium", "firefox", "java_home", "nginx", "postgres_programs"]

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


def chromium() -> Path | None:
    """The program of a Chromium or Chrome: ``$CHROMIUM``, or one on the path; best one without windows, whose pages
    open in a third of the processor's time.
    """
    return _program("CHROMIUM", "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def firefox() -> Path | None:
    """The program of a Firefox: ``$FIREFOX``, or one on the path."""
    return _program("FIREFOX", "firefox-esr", "firefox")


def nginx() -> Path | None:
    """The program of an nginx: ``$NGINX``, or one on the path or where Debian has it."""
    return _program("NGINX", "nginx", "/usr/sbin/nginx")


def _program(variable: str, *names: str) -> Path | None:
    found = next(
        (path for name in (os.environ.get(variable), *names) if name and (path := shutil.which(name))), None
    )
    return None if found is None else Path(found)


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
    places = {
        "postgres": postgres_programs,
        "java": java_home,
        "chromium": chromium,
        "firefox": firefox,
        "nginx": nginx,
    }
    place = places[sys.argv[1]]()
    if place is None:
        sys.exit(f"no {sys.argv[1]} found")
    print(place)
