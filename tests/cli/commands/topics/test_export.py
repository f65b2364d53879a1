from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.files import file_with


@pytest.fixture
def names(tmp_path: Path) -> Path:
    return file_with(
        tmp_path / "names.txt", "orders\n#frag\nnon trimmed\nsensor-partition-0\nsensor-partition-2\ngröße\n"
    )


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
    assert (tmp_path / "f.jsonl").read_text().startswith('{"name":"x","partitions":2,')
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
    assert "line feed" in cli("topics", "export", "a/b", "f.txt", "--format", "names").only_error
    assert sorted(path.name for path in tmp_path.iterdir() if "sqlite" not in path.name) == ["f.jsonl"]
    assert "absent/f.txt" in cli("topics", "export", "a/b", "absent/f.txt").only_error


def test_names_that_no_line_can_carry_are_written_as_json(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text(" a\nb\tc\nd\n")
    assert "--as-names takes the lines as they are" in cli("topics", "import", "a/b", "f.txt").err
    assert cli("topics", "import", "a/b", "f.txt", "--as-names").code == 0
    assert cli("topics", "export", "a/b", "f.jsonl").code == 0
    names = {json.loads(line)["name"] for line in (tmp_path / "f.jsonl").read_text().splitlines()}
    assert names == {" a", "b\tc", "d"}
    assert "3 unchanged" in cli("topics", "import", "a/b", "f.jsonl").out
