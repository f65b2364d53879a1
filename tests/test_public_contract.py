"""The plugins of this repository live by the public contract: what they import is exported and documented.

Read from the syntax trees alone, so it holds for code that no test runs, and for what is imported within a function.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import typing
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pydantic
import pytest

from tests.docs.pages import Block, all_pages, blocks, code_in, tables
from tests.support.one_test import in_one_test
from tests.support.public_api import EMBEDDING, PUBLIC, page_of

ROOT = Path(__file__).parent.parent
PLUGINS = tuple(sorted((ROOT / "plugins").glob("*/broker_core_*")))
FILES = sorted(path for plugin in PLUGINS for path in plugin.rglob("*.py"))
EXAMPLES = sorted(
    path for path in (ROOT / "examples").rglob("*.py") if not any(part.startswith(".") for part in path.parts)
)
#: Distinct (module, name) that both plugins import from the core, at most.
MOST_NAMES = 64


#: What `broker-core plugins new` writes, with names for what it fills in.
TEMPLATES = sorted((ROOT / "broker_core" / "cli" / "plugin_template").rglob("*.py.template"))
BLOCKS = [block for page in all_pages() for block in blocks(page) if block.language == "python"]


def _tree(path: Path) -> ast.Module:
    text = path.read_text(encoding="utf-8")
    return ast.parse(re.sub(r"\{\{(\w+)\}\}", r"\1", text) if path.suffix == ".template" else text)


def _is_core(module: str | None) -> bool:
    return module is not None and (module == "broker_core" or module.startswith("broker_core."))


@cache
def imports_of(path: Path) -> tuple[tuple[int, str, str], ...]:
    """What :func:`imports` finds in a file, whose tree is not kept."""
    return tuple(imports(_tree(path)))


def imports(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """(line, module, name) of what is imported from the core; of ``import broker_core.x`` the name is empty."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _is_core(node.module):
            for alias in node.names:
                yield node.lineno, str(node.module), alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _is_core(alias.name):
                    yield node.lineno, alias.name, ""
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and _is_core(str(argument.value)):
                    yield node.lineno, str(argument.value), ""


@cache
def documented(module: str) -> set[str]:
    """The names of a public module that its page has."""
    page = "reference/api/embedding.md" if module in EMBEDDING else page_of(module)
    return {
        code_in(row[0])[0]
        for table in tables(page)
        if table.columns == ("name", "what it is")
        for row in table.rows
    }


def _where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def _not_public(path: Path, modules: tuple[str, ...]) -> list[str]:
    return [f"{_where(path, line)}: {what}" for line, what in _private_imports(imports_of(path), modules)]


def _private_imports(
    imported: Iterable[tuple[int, str, str]], modules: tuple[str, ...]
) -> list[tuple[int, str]]:
    return [
        (line, f"{module} {name}")
        for line, module, name in imported
        if module not in modules
        or not name
        or name not in import_module(module).__all__
        or name not in documented(module)
    ]


def test_plugins_import_what_is_exported_and_documented() -> None:
    found = [each for path in FILES for each in _not_public(path, PUBLIC)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", [*EXAMPLES, *TEMPLATES], ids=lambda path: path.name)
def test_examples_import_what_is_exported_and_documented(path: Path) -> None:
    assert not _not_public(path, (*PUBLIC, *EMBEDDING))


@in_one_test("block", BLOCKS)
def test_the_pages_import_what_is_exported_and_documented(block: Block) -> None:
    assert not _private_imports(imports(ast.parse(block.text)), (*PUBLIC, *EMBEDDING))


def _unknown_paths(text: str) -> list[str]:
    """Dotted paths of the core in a text that lead to nothing public: ``broker_core.cli.common_options.command``."""
    wrong = []
    for path in re.findall(r"(?<![\w./-])broker_core(?:\.[A-Za-z_]\w*)+", text):
        if find_spec(".".join(path.split(".")[:2])) is None:
            continue  # a name of the package, or a table of the schema of this name
        modules = [name for name in (*PUBLIC, *EMBEDDING) if path == name or path.startswith(f"{name}.")]
        module = max(modules, key=len)
        rest = path.removeprefix(module).lstrip(".").partition(".")[0]
        if rest and rest not in import_module(module).__all__:
            wrong.append(path)
    return wrong


@in_one_test("page", ["README.md", *(f"docs/{page}" for page in all_pages())])
def test_the_text_of_the_pages_names_no_private_module(page: str) -> None:
    assert not _unknown_paths((ROOT / page).read_text(encoding="utf-8"))


def test_a_private_path_in_a_text_is_found() -> None:
    assert _unknown_paths(
        "`broker_core.cli.common_options.plugin_settings`, broker_core.errors.ListingFailed"
    ) == ["broker_core.cli.common_options.plugin_settings"]


def test_plugins_need_few_names_of_the_core() -> None:
    names = {(module, name) for path in FILES for _, module, name in imports_of(path)}
    shown = "\n".join(f"{module} {name}" for module, name in sorted(names))
    assert len(names) <= MOST_NAMES, f"{len(names)}:\n{shown}"


# -- attributes that begin with an underscore


def underscored(path: Path) -> Iterator[tuple[int, str]]:
    """(line, what) of attributes with an underscore on anything but ``self``, ``cls`` and the file's own classes.

    ``getattr`` and its like are looked at too.
    """
    tree = _tree(path)
    own = {"self", "cls", *(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _hidden(node.attr):
            owner = ast.unparse(node.value)
            if owner not in own:
                yield node.lineno, f"{owner}.{node.attr}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {
            "getattr",
            "setattr",
            "hasattr",
            "delattr",
            "object.__setattr__",
            "object.__getattribute__",
        }:
            for argument in node.args[1:2]:
                if isinstance(argument, ast.Constant) and _hidden(str(argument.value)):
                    yield node.lineno, ast.unparse(node)


#: Where an object keeps its fields, whatever they are called.
_WAYS_PAST = {"__dict__", "__slots__", "__closure__", "__getstate__", "__setstate__"}


def _hidden(name: str) -> bool:
    """Private, or a way past what is private."""
    return name in _WAYS_PAST or (
        name.startswith("_") and not (name.startswith("__") and name.endswith("__"))
    )


def test_no_underscore_of_a_core_object_is_touched() -> None:
    """Nor of any other object that is not the file's own: what it is of, a syntax tree cannot tell."""
    found = [f"{_where(path, line)}: {what}" for path in FILES for line, what in underscored(path)]
    assert not found, "\n".join(found)


# -- subclasses


def _may_be_derived_from(value: object) -> bool:
    """Protocols, errors and models of settings are there for it."""
    if not inspect.isclass(value):
        return False
    return (
        issubclass(value, BaseException | pydantic.BaseModel | enum.Enum) or typing.Protocol in value.__mro__
    )


def derived(path: Path) -> Iterator[tuple[int, str]]:
    """(line, class of the core) that a file derives a class from, against the rules."""
    tree = _tree(path)
    known = {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and _is_core(node.module)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                name = ast.unparse(base).partition("[")[0]
                if name in known:
                    module, exported = known[name]
                    if not _may_be_derived_from(getattr(import_module(module), exported)):
                        yield node.lineno, f"{module}.{exported}"


def test_no_class_of_the_core_is_derived_from() -> None:
    found = [
        f"{_where(path, line)}: {what}"
        for path in [*FILES, *EXAMPLES, *TEMPLATES]
        for line, what in derived(path)
    ]
    assert not found, "\n".join(found)


# -- what a module says is public


@pytest.mark.parametrize("module", [*PUBLIC, *EMBEDDING])
def test_a_public_module_has_all_that_it_says(module: str) -> None:
    found = import_module(module)
    assert len(set(found.__all__)) == len(found.__all__)
    assert all(hasattr(found, name) for name in found.__all__)
    assert not [name for name in found.__all__ if _hidden(name)]


def test_no_other_module_has_a_page() -> None:
    """A top-level module is private by having no page: the list of the public ones is the list of the pages."""
    pages = {path.stem for path in (ROOT / "docs" / "reference" / "api").glob("*.md")}
    assert pages == {*(module.rpartition(".")[2] for module in PUBLIC), "embedding"}
