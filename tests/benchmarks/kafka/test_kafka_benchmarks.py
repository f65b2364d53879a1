from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.kafka.__main__ import measure
from tests.benchmarks.kafka.neighbours import main, run
from tests.benchmarks.ours import make_catalogue


def test_each_figure_is_measured(tmp_path: Path) -> None:
    figures, memory = measure(tmp_path / "run", 10_000, 1)
    assert {"Metadata v13 of all", "names only", "Metadata v13 by id"} <= figures.keys()
    assert all(figure.ours is not None and figure.cpu > 0 for figure in figures.values())
    assert memory > 0


def test_what_is_felt_beside_a_scene_is_noted(tmp_path: Path) -> None:
    catalogue = make_catalogue(tmp_path / "catalogue", 10_000)
    beside = run(catalogue.path, tmp_path / "run", "descriptors")
    assert beside.ends["refused"] > 0
    assert beside.ends["ready 200"] == 5
    assert beside.ends["answered"] == 1
    assert beside.pings
    assert beside.cpu > 0


def test_a_scene_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--scenes", "many,names"])
    assert "no scenes: names\n" in capsys.readouterr().err
