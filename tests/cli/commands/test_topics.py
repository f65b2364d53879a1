from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


@pytest.fixture
def names(tmp_path: Path) -> Path:
    file = tmp_path / "names.txt"
    file.write_text(
        "orders\n#frag\n non trimmed \nsensor-partition-0\nsensor-partition-2\ngröße\n", encoding="utf-8"
    )
    return file


def test_import_show_export(cli: Cli, names: Path, tmp_path: Path) -> None:
    said = cli("topics", "import", "public/default", names)
    assert said.out == "imported 5 topics into public/default: 5 created, 0 updated, 0 unchanged\n"
    assert said.err.startswith(f"broker-core: made a new catalogue {tmp_path / 'broker-core.sqlite'} ")
    assert (tmp_path / "broker-core.sqlite").exists()
    shown = json.loads(cli("topics", "show", "public/default", "sensor", "--format", "json").out)
    assert shown["partitions"] == 3
    assert shown["names"] == [f"persistent://public/default/sensor-partition-{index}" for index in (0, 2)]
    exported = cli("topics", "export", "public/default", "--format", "names").out
    assert sorted(exported.splitlines()) == sorted(names.read_text(encoding="utf-8").splitlines())
    again = tmp_path / "again.txt"
    assert cli("topics", "export", "public/default", again).err == f"broker-core: wrote 6 lines to {again}\n"
    assert "0 created, 0 updated, 5 unchanged" in cli("topics", "import", "public/default", again).out


def test_an_export_loses_nothing(cli: Cli, tmp_path: Path) -> None:
    cli("topics", "create", "a/b", "x", "--partitions", "2", "--property", "region=eu")
    cli("topics", "create", "non-persistent://a/b/y")
    assert cli("topics", "export", "a/b", "f.jsonl").code == 0
    assert (tmp_path / "f.jsonl").read_text().startswith('{"name": "x", "partitions": 2, ')
    assert cli("topics", "import", "a/b", "f.jsonl", "--catalog", "copy.sqlite").code == 0
    assert (
        cli("topics", "export", "a/b", "--catalog", "copy.sqlite").out == (tmp_path / "f.jsonl").read_text()
    )
    assert cli("topics", "export", "a/b", "--format", "names").out == (
        "x-partition-0\nx-partition-1\nnon-persistent://a/b/y\n"
    )


def test_a_namespace_that_is_not_there_is_no_empty_export(cli: Cli, names: Path) -> None:
    assert cli("topics", "import", "public/default", names).code == 0
    assert "nobody/here" in cli("topics", "export", "nobody/here", "backup.txt").only_error
    assert not Path("backup.txt").exists()


def test_an_export_that_cannot_be_leaves_no_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('{"name": "a\\nb"}\n')
    assert cli("topics", "import", "a/b", "f.jsonl").code == 0
    assert "line feed" in cli("topics", "export", "a/b", "f.txt").only_error
    assert sorted(path.name for path in tmp_path.iterdir() if "sqlite" not in path.name) == ["f.jsonl"]
    assert "absent/f.txt" in cli("topics", "export", "a/b", "absent/f.txt").only_error


def test_import_from_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b'{"name": "orders", "partitions": 3, "properties": {"region": "eu"}}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert cli("topics", "import", "public/default", "-").out.startswith("imported 1 topics")
    shown = json.loads(cli("topics", "show", "public/default/orders", "--format", "json").out)
    assert (shown["partitions"], shown["properties"]) == (3, {"region": "eu"})


def test_a_wrong_line_is_named_and_nothing_is_imported(cli: Cli, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("fine\npersistent://other/ns/x\n")
    cli("topics", "create", "public/default", "there")
    said = cli("topics", "import", "public/default", wrong)
    assert said.only_error.startswith(f"{wrong}: line 2: ")
    assert json.loads(cli("topics", "show", "--format", "json").out)[0]["topics"] == 1


def test_what_is_not_there_is_named(cli: Cli, tmp_path: Path) -> None:
    assert "absent.txt: No such file or directory" in cli("topics", "import", "a/b", "absent.txt").only_error
    assert "Invalid namespace name 'a'" in cli("topics", "import", "a", "absent.txt").only_error
    assert "There is no catalogue" in cli("topics", "show", "--catalog", "absent.sqlite").only_error
    assert not (tmp_path / "absent.sqlite").exists()
    cli("topics", "create", "a/b", "x")
    assert "no topic persistent://a/b/y" in cli("topics", "show", "a/b", "y").only_error
    assert "no topic persistent://a/b/y" in cli("topics", "delete", "a/b", "y").only_error
    foreign = tmp_path / "foreign.sqlite"
    foreign.write_bytes(b"no database" * 100)
    assert f"{foreign} is not a catalogue" in cli("topics", "show", "--catalog", foreign).only_error


def test_create_and_delete(cli: Cli) -> None:
    said = cli(
        "topics", "create", "a/b", "x", "--partitions", "2", "--property", "region=eu", "--property", "k="
    )
    assert said.out == "created persistent://a/b/x with 2 partitions\n"
    shown = json.loads(cli("topics", "show", "a/b/x", "--format", "json").out)
    assert shown["properties"] == {"region": "eu", "k": ""}
    assert "is there already" in cli("topics", "create", "persistent://a/b/x").only_error
    assert cli("topics", "delete", "a/b", "x-partition-1").out == "deleted persistent://a/b/x-partition-1\n"
    assert "no topic persistent://a/b/y" in cli("topics", "delete", "a/b", "x", "y").only_error
    assert cli("topics", "delete", "a/b", "x").code == 0
    assert json.loads(cli("topics", "show", "a/b", "--format", "json").out)["topics"] == 0
    new = cli("topics", "create", "a/b/x").code == 0
    assert new
    assert json.loads(cli("topics", "show", "a/b/x", "--format", "json").out)["id"] != shown["id"]
    assert (
        "--property 'k': expected KEY=VALUE" in cli("topics", "create", "a/b/z", "--property", "k").only_error
    )
    assert (
        "Invalid value for '--partitions'"
        in cli("topics", "create", "a/b/z", "--partitions", "-1").only_error
    )


def test_show_namespaces(cli: Cli) -> None:
    cli("topics", "create", "a/b", "x", "--partitions", "3")
    cli("topics", "create", "a/c", "y")
    shown = json.loads(cli("topics", "show", "--format", "json").out)
    assert [(row["namespace"], row["topics"], row["names"]) for row in shown] == [
        ("a/b", 1, 3),
        ("a/c", 1, 1),
    ]
    one = json.loads(cli("topics", "show", "a/b", "--format", "json").out)
    assert one == shown[0]
    assert one["version"].endswith(":1")
    table = cli("topics", "show").out
    assert "a/b" in table
    assert "names" in table


def test_the_catalogue_is_the_one_of_the_settings(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    config = tmp_path / "etc" / "broker-core.toml"
    config.write_text('[catalog]\npath = "t.sqlite"\n')
    assert cli("topics", "create", "a/b", "x", "--config", config).code == 0
    assert (tmp_path / "etc" / "t.sqlite").exists()
    assert cli("topics", "show", "a/b", "x", "--catalog", tmp_path / "etc" / "t.sqlite").code == 0
