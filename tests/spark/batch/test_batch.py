"""The face of the batch imports what is used alone: tasks and commands start sooner."""

from __future__ import annotations

import subprocess
import sys

import pytest

from broker_core_spark import batch


def test_nothing_is_imported_before_it_is_used() -> None:
    script = (
        "import sys, broker_core_spark.batch as batch\n"
        "assert issubclass(batch.InvalidPatterns, Exception)\n"
        "print([name for name in ('numpy', 'pyarrow', 'pyspark') if name in sys.modules])\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_every_name_is_there() -> None:
    assert all(getattr(batch, name).__name__ == name for name in batch.__all__ if name.islower())
    with pytest.raises(AttributeError, match=r"'broker_core_spark.batch' has no attribute 'nothing'"):
        batch.nothing  # noqa: B018 - it raises
