from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.files import file_with


def test_import_from_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b'{"name": "orders", "partitions": 3, "properties": {"region": "eu"}}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert cli("topics", "import", "public/default", "-").out.startswith("imported 1 topic ")
    shown = json.loads(cli("topics", "show", "public/default/orders", "--format", "json").out)
    assert (shown["partitions"], shown["properties"]) == (3, {"region": "eu"})


def test_a_wrong_line_is_named_and_nothing_is_imported(cli: Cli, tmp_path: Path) -> None:
    wrong = file_with(tmp_path / "wrong.txt", "fine\npersistent://other/ns/x\n")
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
    foreign = file_with(tmp_path / "foreign.sqlite", b"no database" * 100)
    assert f"{foreign} is not a catalogue" in cli("topics", "show", "--catalog", foreign).only_error


def test_the_catalogue_is_the_one_of_the_settings(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    config = file_with(tmp_path / "etc" / "broker-core.toml", '[catalog]\npath = "t.sqlite"\n')
    assert cli("topics", "create", "a/b", "x", "--config", config).code == 0
    assert (tmp_path / "etc" / "t.sqlite").exists()
    assert cli("topics", "show", "a/b", "x", "--catalog", tmp_path / "etc" / "t.sqlite").code == 0
