"""Commands run in the process of the tests, as those of the core do."""

from __future__ import annotations

from tests.cli.conftest import _in_a_folder_of_its_own, cli

__all__ = ["_in_a_folder_of_its_own", "cli"]
