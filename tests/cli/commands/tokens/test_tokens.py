"""`broker-core tokens` reads what `pulsar tokens` writes, and the other way round."""

from __future__ import annotations

from tests.cli.conftest import Cli


def test_the_commands_are_those_of_pulsars_tool(cli: Cli) -> None:
    said = cli("tokens", "--help")
    for name in ("create-secret-key", "create-key-pair", "create", "show", "validate"):
        assert f" {name} " in said.out
