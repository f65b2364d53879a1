"""``gc`` prints what it removed, and a dry run what it would remove."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from broker_core.names import Mode
from broker_core_spark.commands.gc_command import gc
from broker_core_spark.errors import StoreFailed
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.store import garbage_collection, open_store
from broker_core_spark.store.build_and_gc_marks import write_mark
from broker_core_spark.store.publishing import begin_build
from tests.support.generation_builder import build_generation

app = typer.Typer()
app.command()(gc)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A store with three generations."""
    store = open_store(str(tmp_path))
    for name in "abc":
        with begin_build(store) as build:
            questions = [CanonicalQuestion.of("t/n", Mode.ALL, None)]
            build.publish(
                build_generation(store, {"t/n": {"persistent": [name]}}, questions, catalogue_id="c")
            )
    return str(tmp_path)


def test_old_generations_go(folder: str) -> None:
    said = []
    for options in (["--dry-run"], [], []):
        ran = CliRunner().invoke(app, ["--keep", "1", "--grace", "0s", "--store", folder, *options])
        assert ran.exit_code == 0, ran.output
        said.append(ran.stdout)
    dry, wet, again = said
    assert "  segments/" in dry
    assert "bytes would be removed; generations kept: " in dry
    assert dry.replace("would be removed", "removed") == wet
    assert again.startswith("0 files of 0 bytes removed")


def test_without_options_nothing_young_goes(folder: str) -> None:
    ran = CliRunner().invoke(app, ["--store", folder])
    assert ran.stdout.startswith("0 files")


def test_a_duration_that_is_none_is_said(folder: str) -> None:
    ran = CliRunner().invoke(app, ["--grace", "soon", "--store", folder])
    assert ran.exit_code == 2
    assert "--grace" in ran.output


def test_a_build_under_way_is_said(folder: str) -> None:
    write_mark(open_store(folder), "build")
    ran = CliRunner().invoke(app, ["--store", folder])
    assert isinstance(ran.exception, StoreFailed)


def test_a_pointer_that_cannot_be_read_is_told(folder: str) -> None:
    (Path(folder) / "pointers" / "000000000099.json").write_bytes(b"{")
    ran = CliRunner().invoke(app, ["--keep", "1", "--grace", "0s", "--store", folder])
    assert ran.exit_code == 0, ran.output
    assert "a pointer cannot be read: pointers/000000000099.json: it is no pointer" in ran.stderr
    assert "broker-core spark use GENERATION" in ran.stderr


def test_what_there_was_no_time_for_is_told(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "GC_GRACE", timedelta(0))
    monkeypatch.setattr(garbage_collection, "_check_time", lambda *_: None)
    ran = CliRunner().invoke(app, ["--keep", "1", "--grace", "0s", "--store", folder])
    assert ran.stdout.startswith("0 files")
    assert "to be removed: the time of a gc was over, run it again" in ran.stderr
