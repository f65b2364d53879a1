"""Releases of PySpark beside the installed one: each in a folder of its own, in front of the environment's packages."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.support.distributions import ROOT

__all__ = ["RELEASES", "PySparkUnavailable", "environment_with", "pyspark_release"]

#: The releases that tests ask for, and the SHA-256 of their source distributions.
RELEASES: Final[Mapping[str, str]] = {
    "3.5.9": "ea27adc39ddac9413b8951e45aa748cbed6c785971b81386efc41938f6243d93",
    "4.0.5": "a0d44b0e7faf0458ad83b7aa664e7ed8b96beed8a55d66ce3b0dfac2309dfca6",
    "4.1.4": "bcbd5e18690cf79d438e97210ad06fb8d451a251bb77becc2b0418868d2acd73",
    "4.2.1": "d79b7c8ee41e66a9202fe6f600ca90b931ca571ae9dbdf31c58d2672e5102da0",
}
#: Kept out of git: 0.3 to 0.5 GB for each release.
_CACHE: Final = ROOT / ".cache" / "pyspark"
_FETCH_SECONDS: Final = 900


class PySparkUnavailable(Exception):
    """This release cannot be had here. The message is one line that says why."""


def pyspark_release(version: str) -> Path:
    """The folder with PySpark ``version``, fetched from the package index when it is not there yet (a minute).

    Only PySpark is in it. What it needs (py4j, pandas, pyarrow) is that of the tests' environment. Raises
    :exc:`PySparkUnavailable` if the index cannot be reached.
    """
    release = _CACHE / version
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "lock").open("w") as lock:  # several processes of tests may ask
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not release.is_dir():
            _fetch(version, release)
    return release


def environment_with(release: Path) -> dict[str, str]:
    """The environment of a program that shall import PySpark from ``release`` and everything else as the tests do."""
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    environment["PYTHONPATH"] = os.pathsep.join([str(release), str(ROOT)])
    return environment


def _fetch(version: str, release: Path) -> None:
    fresh = release.with_name(release.name + ".fetching")
    shutil.rmtree(fresh, ignore_errors=True)
    # Not through uv's cache: it would keep the archive, what is unpacked from it, and the wheel.
    options = [
        "--quiet",
        "--no-config",
        "--no-cache",
        "--no-deps",
        "--no-build-isolation",
        "--require-hashes",
    ]
    command = [Path(sys.executable).with_name("uv"), "pip", "install", *options]
    command += ["--python", sys.executable, "--target", fresh, "--requirement", "-"]
    try:
        done = subprocess.run(
            [str(word) for word in command],
            input=f"pyspark=={version} --hash=sha256:{RELEASES[version]}\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=_FETCH_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise PySparkUnavailable(f"PySpark {version} did not come within {_FETCH_SECONDS} s") from None
    if done.returncode == 0:
        fresh.rename(release)
        return
    shutil.rmtree(fresh, ignore_errors=True)
    if "error sending request" in done.stderr or "network" in done.stderr:
        raise PySparkUnavailable(f"PySpark {version} cannot be fetched: the package index cannot be reached")
    raise RuntimeError(f"uv could not install PySpark {version}:\n{done.stderr}")
