from __future__ import annotations

from tests.cli.conftest import Cli


def test_the_group_names_its_commands(cli: Cli) -> None:
    assert all(word in cli("kafka", "--help").out for word in ("users", "acls"))
    for group in ("users", "acls"):
        assert all(word in cli("kafka", group, "--help").out for word in ("add", "list", "remove"))
