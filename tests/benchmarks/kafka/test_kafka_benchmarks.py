from __future__ import annotations

from pathlib import Path

from tests.benchmarks.kafka.__main__ import measure


def test_each_figure_is_measured(tmp_path: Path) -> None:
    figures, memory = measure(tmp_path / "run", 10_000, 1)
    assert {"Metadata v13 of all", "names only", "Metadata v13 by id"} <= figures.keys()
    assert all(figure.ours is not None and figure.cpu > 0 for figure in figures.values())
    assert memory > 0
