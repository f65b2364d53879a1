from __future__ import annotations

import json

from tests.cli.conftest import Cli


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
