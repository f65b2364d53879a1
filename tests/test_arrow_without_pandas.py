"""Arrow without pandas: not imported by the core, and there for programs that want it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_WITHOUT = """
import sys
import broker_core.patterns
import pyarrow as pa
pa.array(["a"])
assert "pandas" not in sys.modules
assert not any(type(finder).__name__ == "_NoPandas" for finder in sys.meta_path)
"""
_WITH = """
import pandas
assert pa.array(pandas.Series(["a", None])).to_pylist() == ["a", None]
assert list(pa.array([1, 2]).to_pandas()) == [1, 2]
assert pa.Table.from_pandas(pandas.DataFrame({"a": [1]})).num_rows == 1
"""


def _run(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_core_does_not_import_pandas() -> None:
    _run(_WITHOUT)


def test_pandas_works_afterwards_and_before() -> None:
    pytest.importorskip("pandas")
    _run(_WITHOUT + _WITH)
    _run("import pyarrow as pa\nimport pandas\nimport broker_core.patterns\n" + _WITH)
