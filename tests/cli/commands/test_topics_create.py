from __future__ import annotations

import json

from tests.cli.conftest import Cli


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
