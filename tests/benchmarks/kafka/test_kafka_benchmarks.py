from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from tests.benchmarks.kafka import pages
from tests.benchmarks.kafka.__main__ import measure
from tests.benchmarks.kafka.neighbours import main, run
from tests.benchmarks.ours import make_catalogue
from tests.support.kafka_serving import kafka_broker
from tests.support.kafka_topics import create
from tests.support.narrowed import present


def test_each_figure_is_measured(tmp_path: Path) -> None:
    figures, memory = measure(tmp_path / "run", 10_000, 1)
    assert {"Metadata v13 of all", "names only", "Metadata v13 by id"} <= figures.keys()
    assert all(figure.ours is not None for figure in figures.values())
    assert any(
        figure.cpu > 0 for figure in figures.values()
    )  # in ticks of the system, of which some take none
    assert memory > 0


async def test_a_pass_of_pages_is_measured(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "catalog.sqlite") as catalog:
        for number in range(3):
            create(catalog, f"t{number}", 900)
    async with kafka_broker(tmp_path) as broker:
        address = "{}:{}".format(*present(broker.kafka_address))
        found = await asyncio.to_thread(pages.figures, address, os.getpid(), 5)
    assert min(found.first, found.last, found.passes, found.client_seconds) > 0
    assert found.client_topics == 3


def test_what_is_felt_beside_a_scene_is_noted(tmp_path: Path) -> None:
    catalogue = make_catalogue(tmp_path / "catalogue", 10_000)
    beside = run(catalogue.path, tmp_path / "run", "descriptors")
    assert beside.ends["refused"] > 0
    assert beside.ends["ready 200"] == 5
    assert beside.ends["answered"] == 1
    assert beside.felt["pings"]
    assert beside.cpu > 0


def test_a_scene_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--scenes", "many,names"])
    assert "no scenes: names\n" in capsys.readouterr().err
