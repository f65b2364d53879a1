"""The recipes pass the linter that a project of `broker-core plugins new` comes with.

That they pass its types too is tested with those of the project: tests/examples/test_new_plugin.py.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from broker_core import BoundedCache, Details, Listing, ListingBuilder
from broker_core.cli.new_plugin import write_plugin
from broker_core.listing.listing import Selection
from tests.docs.pages import RECIPES, blocks, read, write_recipes
from tests.support.fresh_environment import run_program
from tests.support.public_api import page_of


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All recipes, with the settings of a new project in place of its own sources."""
    folder = tmp_path_factory.mktemp("recipes")
    write_plugin("acme-topics", folder)
    recipes = folder / "recipes"
    (recipes / "tests").mkdir(parents=True)
    (folder / "acme-topics" / "pyproject.toml").rename(recipes / "pyproject.toml")
    (recipes / "README.md").touch()
    write_recipes(recipes, recipes / "tests")
    return recipes


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "--no-cache"], ["ruff", "format", "--check", "--no-cache", "--line-length=100"]],
    ids=" ".join,
)
def test_recipes_pass_the_linter_of_a_new_project(project: Path, command: list[str]) -> None:
    """As wide as code of pages is: docs/ruff.toml."""
    run_program([sys.executable, "-m", *command, "."], cwd=project)


#: What plugins hold of the core, each with a table of its members on the page.
DESCRIBED = (BoundedCache, Details, Listing, ListingBuilder, Selection)


@pytest.mark.parametrize("page", RECIPES)
def test_recipes_use_documented_members(page: str) -> None:
    plugin = next(block for block in blocks(page) if block.language == "python")
    used = {
        node.attr
        for node in ast.walk(ast.parse(plugin.text))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "request", "page")
    }
    described = read(page_of("broker_core"))
    for name in used:
        owners = [kind.__name__ for kind in DESCRIBED if hasattr(kind, name) and not name.startswith("_")]
        assert not owners or any(f"`{owner}.{name}" in described for owner in owners), f"{owners}: {name}"
