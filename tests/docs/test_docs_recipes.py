"""The recipes pass the linter and the types that a project of `broker-core plugins new` comes with."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from broker_core import BoundedCache, Details, Listing, ListingBuilder
from broker_core.cli.new_plugin import write_plugin
from broker_core.listing.listing import Selection
from tests.docs.pages import all_pages, blocks, read
from tests.support.fresh_environment import run_program
from tests.support.public_api import page_of

RECIPES = [page for page in all_pages() if page.startswith("how-to/recipes/")]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All recipes, with the settings of a new project in place of its own sources."""
    folder = tmp_path_factory.mktemp("recipes")
    write_plugin("acme-topics", folder)
    recipes = folder / "recipes"
    (recipes / "tests").mkdir(parents=True)
    (folder / "acme-topics" / "pyproject.toml").rename(recipes / "pyproject.toml")
    (recipes / "README.md").touch()
    for page in RECIPES:
        files = [block for block in blocks(page) if block.language == "python" and block.file is not None]
        assert len(files) == 2, f"{page}: a plugin and its test"
        for block in files:
            assert block.file is not None
            place = recipes / "tests" if block.file.startswith("test_") else recipes
            (place / block.file).write_text(block.text, encoding="utf-8")
    return recipes


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "--no-cache"], ["ruff", "format", "--check", "--no-cache", "--line-length=100"]],
    ids=" ".join,
)
def test_recipes_pass_the_linter_of_a_new_project(project: Path, command: list[str]) -> None:
    """As wide as code of pages is: docs/ruff.toml."""
    run_program([sys.executable, "-m", *command, "."], cwd=project)


def test_recipes_pass_the_types_of_a_new_project(project: Path, mypy_cache: Path) -> None:
    run_program([sys.executable, "-m", "mypy", "--cache-dir", mypy_cache, "."], cwd=project)


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
