"""The notebook of `examples/spark_notebook`: its cells are run in order, as a kernel runs them, on a real Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from broker_core_spark.batch.spark.java_home import find_java_home
from broker_core_spark.store import open_store
from broker_core_spark.store.published_pointers import current_pointer
from tests.support.distributions import ROOT
from tests.support.quick_java import quick_java_options

NOTEBOOK = ROOT / "examples" / "spark_notebook" / "listings.ipynb"
#: Runs each cell in one namespace. The value of a last expression is shown as notebooks show it.
_KERNEL = """
import ast, json, sys
names = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] != "code":
        continue
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, cell["id"], "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
        show = getattr(value, "_repr_html_", None)
        print("" if value is None else show() if show else repr(value))
names["spark"].stop()
"""


def test_its_cells_run_and_draw_the_coverage(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _KERNEL, str(NOTEBOOK)],
        cwd=tmp_path,
        env={
            **os.environ,
            "JAVA_HOME": str(find_java_home()),
            "MPLBACKEND": "agg",
            "MPLCONFIGDIR": str(tmp_path),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": "--master local[2] --conf spark.ui.enabled=false --conf spark.driver.memory=512m "
            f"--conf 'spark.driver.extraJavaOptions={quick_java_options()} -Xss4m' pyspark-shell",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    published = current_pointer(open_store(str(tmp_path / "generations")))
    assert published is not None
    assert f"<td>{published.generation[:12]} (number 1)</td>" in done.stdout
    assert "<tr><th>Coverage</th><td>92.3%</td></tr>" in done.stdout
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
