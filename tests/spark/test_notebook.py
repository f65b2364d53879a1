"""The notebook of `examples/spark_notebook`: its cells are run in order, as a kernel runs them, on a real Spark."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from broker_core_spark.batch.spark.spark_session import LOCAL_SETTINGS
from broker_core_spark.store import open_store
from broker_core_spark.store.published_pointers import current_pointer
from tests.support.distributions import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTEBOOK = ROOT / "examples" / "spark_notebook" / "listings.ipynb"


def run_cells() -> dict[str, Any]:
    """Run each cell in one namespace, and give it. The value of a last expression is shown as notebooks show it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, cell["id"], "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
            show = getattr(value, "_repr_html_", None)
            print("" if value is None else show() if show else repr(value))
    return names


@contextmanager
def owned_session(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Give the shared session Spark's own settings of SQL and this folder, as if a kernel there had started it."""
    before = {key: spark.conf.get(key) for key in LOCAL_SETTINGS if key.startswith("spark.sql.")}
    name = str(spark.conf.get("spark.app.name"))
    java: Any = spark._jvm
    files = java.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration())
    where = files.getWorkingDirectory()
    files.setWorkingDirectory(java.org.apache.hadoop.fs.Path(str(folder)))
    for key in before:
        spark.conf.unset(key)
    try:
        yield
    finally:
        for key, value in {**before, "spark.app.name": name}.items():
            spark.conf.set(key, str(value))
        files.setWorkingDirectory(where)


def test_its_cells_run_and_draw_the_coverage(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    with owned_session(spark, tmp_path):
        names = run_cells()
    names["plt"].close("all")
    assert names["spark"] is spark
    shown = capsys.readouterr().out
    published = current_pointer(open_store(str(tmp_path / "generations")))
    assert published is not None
    assert f"<td>{published.generation[:12]} (number 1)</td>" in shown
    assert "<tr><th>Coverage</th><td>92.3%</td></tr>" in shown
    totals = {row["pattern"]: row["count"] for row in pq.read_table(tmp_path / "totals").to_pylist()}
    eu_4 = sum(1 for number in range(0, 30_000, 6) if number % 10 == 4)
    assert totals == {
        "acme/team-0/orders-.*": 10_000,
        "acme/team-0/.*4": eu_4,
        "acme/team-1/payments-.*": 10_000,
        None: 10_000,
    }
    assert pq.read_table(tmp_path / "matches").num_rows == sum(totals.values())
    assert pq.read_table(tmp_path / "history").column("questions").to_pylist() == [4]
    picture = (tmp_path / "coverage.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5_000


def test_it_has_no_stored_output() -> None:
    """What a run shows is of that run alone."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
