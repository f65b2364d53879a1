"""Snippets of pages: settings load, formats are right, options exist. `test_docs_run_*.py` run the pages."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml  # type: ignore[import-untyped]  # ships none, and comes with myst-parser

from broker_core.cli.command_tree import app
from broker_core.settings import load_settings
from tests.docs.page_runner import GROUPS, LANGUAGES, matches, pages_to_run, typed
from tests.docs.pages import ROOT, Block, all_pages, blocks
from tests.support.files import file_with
from tests.support.one_test import in_one_test

ALL = [block for page in all_pages() for block in blocks(page)]
SHOWN = {"", "sh", "ini", "nginx", "yaml", "properties", "{toctree}", "{include}", "{literalinclude}"} | {
    *("cpp", "go", "java", "js", "py"),  # programs with Pulsar's own clients
}  # not run
#: What a reader types or copies.
CODE = LANGUAGES | {"sh", "ini", "nginx", "yaml", "properties", "cpp", "go", "java", "js", "py"}


def test_every_block_has_a_language_that_is_known_here() -> None:
    assert {block.language.partition(" ")[0] for block in ALL} <= LANGUAGES | SHOWN


def test_each_page_that_runs_is_run_once() -> None:
    """One file of tests a group, so that the processes of `make test` share the pages out."""
    groups = [set(pages_to_run(group)) for group in GROUPS]
    assert sum(map(len, groups)) == len(set.union(*groups))
    assert set.union(*groups) == {block.page for block in ALL if block.language in LANGUAGES}
    for group in GROUPS:
        text = (Path(__file__).parent / f"test_docs_run_{group}.py").read_text(encoding="utf-8")
        assert f'pages_to_run("{group}")' in text


def test_code_is_no_wider_than_a_page() -> None:
    """What is typed or copied; what programs print is as wide as it is, and an address or a text cannot be broken."""
    wide = [
        f"{block}: {line}"
        for block in ALL
        if block.language in CODE
        and block.page != "reference/http.md"  # made of the operations' own examples
        for line in typed_lines(block)
        if len(line) > 100
        and not any(len(word) > 85 for word in re.findall(r"""'[^']*'|"[^"]*"|\S+""", line))
    ]
    assert not wide, "\n".join(wide)


def typed_lines(block: Block) -> list[str]:
    """The lines of a block but for what its commands print."""
    lines = block.text.splitlines()
    if block.language != "console":
        return lines
    return [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if line.startswith("$ ") or before.endswith("\\")
    ]


def of(language: str) -> list[Block]:
    return [block for block in ALL if block.language == language]


@pytest.mark.parametrize("block", of("toml"), ids=str)
def test_toml_is_settings_or_a_project(block: Block, tmp_path: Path) -> None:
    tables = tomllib.loads(block.text)
    if "project" in tables:
        assert tables["project"]["entry-points"]["broker_core"]
        return
    file = file_with(tmp_path / "broker-core.toml", block.text)
    load_settings(file, environment={})


@pytest.mark.parametrize("block", of("yaml"), ids=str)
def test_yaml_is_yaml(block: Block) -> None:
    (group,) = yaml.safe_load(block.text)["groups"]
    assert all({"alert", "expr"} <= set(rule) for rule in group["rules"])


@in_one_test("block", of("python"))
def test_python_is_formatted_like_the_sources(block: Block) -> None:
    ast.parse(block.text)


def shown_commands() -> list[tuple[Block, str]]:
    lines = [(block, line) for block in [*of("sh"), *of("ini")] for line in block.text.splitlines()]
    lines += [(block, command) for block in of("console") for command, _ in typed(block.text)]
    return [(block, line) for block, line in lines if re.search(r"\bbroker-core [a-z]", line)]


def subcommand(command: Any, name: str) -> Any | None:
    """The command of a group, of plugins too; ``None`` if there is none of the name."""
    return command.get_command(None, name) if hasattr(command, "get_command") else None


@pytest.fixture(scope="module")
def command_tree() -> Any:
    """The commands of `broker-core`; they take longer to make than to look through."""
    return typer.main.get_command(app)


@in_one_test("block, line", shown_commands())
def test_the_options_of_shown_commands_exist(command_tree: Any, block: Block, line: str) -> None:
    for words in re.findall(r"(?:^|[ /])broker-core ((?:[^|;&]|'[^']*')+)", line):
        command = command_tree
        rest = words.split()
        while rest and (below := subcommand(command, rest[0])) is not None:
            command, _ = below, rest.pop(0)
        known = {option for parameter in command.params for option in parameter.opts}
        options = [word for word in rest if word.startswith("--")]
        assert set(options) <= known, f"{block}: {line}"


def test_the_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for block in of("sh"):
        for target in re.findall(r"\bmake ([a-z-]+)", block.text):
            assert target in targets, f"{block}: make {target}"


def test_what_counts_as_the_documented_output() -> None:
    assert matches("a  \nb\n", "a\nb\n")
    assert matches("took 12 ms\n", "took ... ms\n")
    assert matches("", "")
    assert not matches("a\nb\n", "a\n")
    assert not matches("b\n", "")
    assert list(typed("$ one\n1\n$ two\n")) == [("one", "1\n"), ("two", "")]
    assert list(typed("$ one --a \\\n    --b\n1\n")) == [("one --a --b", "1\n")]
