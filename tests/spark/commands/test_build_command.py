"""``broker-core spark build``: its output, its exit codes, its settings. In this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker_core.cli.command_tree import run
from broker_core_spark.store import open_store
from broker_core_spark.store.published_pointers import current_pointer
from tests.support.spark_catalogues import fill, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[dict[str, Any]] = [
    {"namespace": "a/b", "pattern": "a/b/orders-.*", "properties": {"region": "eu", "who": "me"}},
    {"namespace": "a/b", "pattern": "(?=\x07ahead)"},
    {"namespace": "no/where", "pattern": ".*"},
]


@pytest.fixture
def arguments(spark: SparkSession, tmp_path: Path) -> list[str]:
    """The arguments for a catalogue and patterns. The session of the tests is used."""
    assert spark.version
    names = [{"name": f"orders-{number}", "properties": {"region": "eu"}} for number in range(3)]
    fill(tmp_path / "catalogue.sqlite", {"a/b": [*names, "orders-x"]})
    patterns = write_patterns(tmp_path / "patterns.jsonl", ROWS)
    where = ["--catalogue", str(tmp_path / "catalogue.sqlite"), "--patterns", str(patterns)]
    return ["spark", "build", *where, "--out", str(tmp_path / "store")]


def test_the_last_line_is_the_result(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, table = tmp_path / "report.html", tmp_path / "totals.parquet"
    more = ["--property-keys", "region, zone", "--partitions", "3", "--report", str(report)]
    assert run([*arguments, *more, "--export-parquet", str(table), "--incremental"]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out.splitlines()[-1])
    published = current_pointer(open_store(str(tmp_path / "store")))
    assert published is not None
    assert record["generation"] == published.generation
    assert (record["topics"], record["questions"], record["matches"], record["refused"]) == (4, 1, 3, 1)
    assert record["unknown_namespaces"] == ["no/where"]
    assert "RE2 refuses it" in err
    assert "\x07" not in err
    assert "no/where" in err
    assert report.is_file()
    assert table.is_file()


def test_property_keys_of_the_settings(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "broker-core.toml"
    settings.write_text('[catalog]\nproperty_keys = ["who"]\n[patterns]\nmax_length = 5\n', encoding="utf-8")
    assert run([*arguments, "--config", str(settings)]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (record["questions"], record["refused"]) == (0, 2)  # longer than the five characters
    assert run(arguments) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (record["questions"], record["matches"]) == (1, 4)  # without keys nothing selects


@pytest.mark.parametrize("own", ["", '[catalog]\nproperty_keys = ["who"]\n'], ids=["alone", "beside"])
def test_property_keys_of_a_plugin_select_as_in_the_broker(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], own: str
) -> None:
    settings = tmp_path / "broker-core.toml"
    plugins = '[plugins]\nenabled = ["postgres"]\n[plugins.postgres]\ndsn = "postgresql://h/d"\n'
    settings.write_text(f'{own}{plugins}property_keys = ["region"]\n', encoding="utf-8")
    assert run([*arguments, "--config", str(settings)]) == 0
    out, err = capsys.readouterr()
    record = json.loads(out.splitlines()[-1])
    assert (record["questions"], record["matches"]) == (1, 0 if own else 3)
    assert ("differ" in err) is bool(own)


def test_plugins_that_cannot_be_loaded_ask_for_the_keys(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "broker-core.toml"
    settings.write_text('[plugins]\nenabled = ["not-there"]\n', encoding="utf-8")
    assert run([*arguments, "--config", str(settings)]) == 2
    assert "--property-keys" in capsys.readouterr().err
    assert run([*arguments, "--config", str(settings), "--property-keys", "region"]) == 0


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--partitions", "0"], 2, "partitions"),
        (["--conf", "nonsense"], 2, "expected KEY=VALUE"),
        (["--catalogue", "missing.sqlite"], 1, "There is no catalogue"),
        (["--patterns", "missing.jsonl"], 1, "No such file"),
        (["--out", "ftp://host/x"], 1, "no place for generations"),
        (["--unknown"], 2, "unknown"),
    ],
    ids=["partitions", "conf", "catalogue", "patterns", "out", "option"],
)
def test_what_is_wrong_is_one_line_and_an_exit_code(
    arguments: list[str], capsys: pytest.CaptureFixture[str], more: list[str], code: int, message: str
) -> None:
    assert run([*arguments, *more]) == code
    out, err = capsys.readouterr()
    assert message in err
    assert not out
    assert "Traceback" not in err


def test_a_line_of_the_patterns_that_is_none(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "patterns.jsonl").write_text('{"namespace": "a/b"}\n{"mode": "ALL"}\n', encoding="utf-8")
    assert run(arguments) == 1
    assert "line 2" in capsys.readouterr().err
    assert current_pointer(open_store(str(tmp_path / "store"))) is None
