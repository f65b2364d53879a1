"""Arrow without pandas in processes of `broker-core`, and as it always is in all others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_IMPORTED = """
import sys
from broker_core.memory.arrow_without_pandas import keep_pandas_out, let_pandas_in
{}
import broker_core.patterns
assert "pandas" not in sys.modules
import pyarrow as pa
pa.array(["a"])
assert not any(type(finder).__name__ == "_NoPandas" for finder in sys.meta_path)
"""
_OURS = _IMPORTED.format("keep_pandas_out()")
_KEPT_OUT = 'assert "pandas" not in sys.modules\n'
_WITH = """
import pandas
assert pa.array(pandas.Series(["a", None])).to_pylist() == ["a", None]
assert list(pa.array([1, 2]).to_pandas()) == [1, 2]
assert pa.Table.from_pandas(pandas.DataFrame({"a": [1]})).num_rows == 1
"""
_NULLS = """
import pandas
frame = pandas.DataFrame({"a": ["x", pandas.NA], "t": [pandas.Timestamp(0), pandas.NaT]}, dtype=object)
assert [column.null_count for column in pa.Table.from_pandas(frame).columns] == [1, 1]
"""
_PLUGIN = """
import sys
sys.path.insert(0, {!r})
"""


def _run(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_process_of_ours_does_not_import_pandas_which_works_afterwards_and_before() -> None:
    pytest.importorskip("pandas")
    _run(_OURS + _KEPT_OUT + _WITH)
    _run("import pyarrow as pa\nimport pandas\nimport broker_core.patterns\n" + _WITH)


@pytest.mark.parametrize("begin", ["", "keep_pandas_out(); let_pandas_in()"])
def test_in_another_program_nulls_of_pandas_are_nulls(begin: str) -> None:
    """As PySpark hands them to Arrow in a program that imports this package."""
    pytest.importorskip("pandas")
    _run(_IMPORTED.format(begin) + _NULLS)


@pytest.mark.parametrize(
    ("requirements", "kept_out"),
    [(["numpy", "Pandas>=2"], False), (["pandas>=2; extra == 'batch'", "pandas-stubs", "numpy"], True)],
)
def test_a_plugin_that_requires_pandas_has_arrow_as_it_is(
    tmp_path: Path, requirements: list[str], *, kept_out: bool
) -> None:
    pytest.importorskip("pandas")
    metadata = tmp_path / "framed-1.dist-info"
    metadata.mkdir()
    lines = "".join(f"Requires-Dist: {each}\n" for each in requirements)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: framed\nVersion: 1\n{lines}Provides-Extra: batch\n"
    )
    (metadata / "entry_points.txt").write_text("[broker_core]\nframed = framed\n")
    said = _KEPT_OUT if kept_out else _NULLS
    _run(_PLUGIN.format(str(tmp_path)) + _OURS + said)
