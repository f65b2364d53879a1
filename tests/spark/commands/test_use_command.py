"""``use`` goes back to an older generation, by its first digits or by a dash."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from broker_core.names import Mode
from broker_core_spark.commands.use_command import use
from broker_core_spark.errors import NoSuchGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.store import open_store
from broker_core_spark.store.published_pointers import PublishedPointer, current_pointer
from broker_core_spark.store.publishing import begin_build
from tests.support.generation_builder import build_generation
from tests.support.narrowed import present

app = typer.Typer()
app.command()(use)


def publish(folder: Path, name: str) -> PublishedPointer:
    store = open_store(str(folder))
    with begin_build(store) as build:
        questions = [CanonicalQuestion.of("t/n", Mode.ALL, None)]
        return build.publish(
            build_generation(store, {"t/n": {"persistent": [name]}}, questions, catalogue_id="c")
        )


def test_an_older_generation_is_served_again(tmp_path: Path) -> None:
    first, second = publish(tmp_path, "a"), publish(tmp_path, "b")
    ran = CliRunner().invoke(app, [first.generation[:10], "--store", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout == f"{first.generation[:12]} is served from now on (it was {second.generation[:12]})\n"
    ran = CliRunner().invoke(app, ["-", "--store", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    served = present(current_pointer(open_store(str(tmp_path))))
    assert (served.number, served.generation) == (4, second.generation)


@pytest.mark.parametrize("by", ["digits", "dash"])
def test_it_is_the_way_out_where_the_newest_pointer_cannot_be_read(tmp_path: Path, by: str) -> None:
    first = publish(tmp_path, "a")
    (tmp_path / "pointers" / "000000000099.json").write_bytes(b"\x80\x00{")
    wanted = first.generation[:10] if by == "digits" else "-"
    ran = CliRunner().invoke(app, [wanted, "--store", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert "(the newest pointer could not be read: pointers/000000000099.json: " in ran.stdout
    served = present(current_pointer(open_store(str(tmp_path))))
    assert (served.number, served.generation) == (100, first.generation)


@pytest.mark.parametrize("generation", ["0000", "-"])
def test_a_generation_that_is_none_is_an_error_and_makes_nothing(tmp_path: Path, generation: str) -> None:
    ran = CliRunner().invoke(app, [generation, "--store", str(tmp_path / "typo")])
    assert isinstance(ran.exception, NoSuchGeneration)
    assert not (tmp_path / "typo").exists()
