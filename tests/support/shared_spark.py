"""Tests that share a Spark session: one process runs them all, whose JVM starts once and is warm for them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.support.distributions import ROOT

__all__ = ["OneSparkProcess", "shares_spark"]


@cache
def shares_spark(file: Path) -> bool:
    """Whether tests of a file use the session."""
    return file.is_relative_to(ROOT / "tests" / "spark") and "SparkSession" in file.read_text(
        encoding="utf-8"
    )


class OneSparkProcess(LoadFileScheduling):  # type: ignore[misc]
    """A process takes file by file, and the files that share a session as if they were one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "spark" if shares_spark(ROOT / file) else file
