"""Others import a package from its face only: counted here on its own, beside the contracts of `lint-imports`."""

from __future__ import annotations

import ast
import importlib
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.import_statements import import_statements
from tests.test_tree import PACKAGES, ROOT, SOURCES

#: Packages that only group others: each of those has a face.
GROUPS = frozenset({"broker_core.servers", "broker_core.wire"})
#: Faces within a package that has a face itself.
FACES_WITHIN = frozenset(
    {
        "broker_core.client.failover",
        "broker_core.client.kafka",
        "broker_core.kafka.acls",
        "broker_core.kafka.configs",
        "broker_core.kafka.scram",
        "broker_core.upstream.kafka",
        "broker_core.upstream.pulsar",
        "broker_core.upstream.snapshots",
        "broker_core.wire.kafka.topic_fragments",  # clients do without its Arrow
        "broker_core_postgres.connect.libpq",
        "broker_core_postgres.fill.sync",
    }
)
#: The packages whose parts have faces.
HELD = ("broker_core", "broker_core_postgres", "broker_core_spark")
#: A module used by its name: ``commands.ping()``.
COMMANDS = "broker_core.wire.pulsar.commands"
#: Modules right below the core, or below a plugin, that are in no package.
MOST_LOOSE = 8
#: The testing kit, and the helpers for the commands of plugins, are other faces of the command.
OTHER_FACES = {"broker_core.plugin_cli": "broker_core.cli", "broker_core.testing": "broker_core.cli"}


def _dotted(source: Path) -> str:
    top = next(package for package in PACKAGES if source.is_relative_to(package))
    parts = source.relative_to(top.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name: source for source in SOURCES if (name := _dotted(source)).partition(".")[0] in HELD}
_PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"} - {*HELD}
#: The packages that others import, each by its face.
FACES = {
    name for name in _PACKAGES if name.rpartition(".")[0] in {*HELD, *GROUPS} or name in FACES_WITHIN
} - GROUPS


def _is_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


@cache
def _imports(source: Path) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a source, in functions and for types too."""
    return list(import_statements(ast.parse((ROOT / source).read_text(encoding="utf-8"))))


def _imported(source: Path) -> Iterator[tuple[str, int]]:
    """The modules that a source imports; a name of a module is its module."""
    for node in _imports(source):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        else:
            assert node.level == 0, f"{source}:{node.lineno} imports from a relative module"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                exported = f'"{alias.name}"' in _text_of(node.module or "")
                yield (full if full in MODULES and not exported else node.module or "", node.lineno)


@cache
def _text_of(module: str) -> str:
    return (ROOT / MODULES[module]).read_text(encoding="utf-8") if module in MODULES else ""


def _is_behind(importer: str, module: str) -> bool:
    """Whether a module is behind the face of a package that its importer is no part of."""
    if module not in MODULES or module in FACES or module == COMMANDS:
        return False
    package = module.rpartition(".")[0]
    while package and package not in FACES:
        package = package.rpartition(".")[0]
    if not package or _is_in(importer, package):
        return False
    return not any(_is_in(importer, part) for part, whose in OTHER_FACES.items() if whose == package)


def test_nothing_is_imported_from_behind_a_face() -> None:
    crossing = 0
    behind = []
    for importer, source in MODULES.items():
        for module, line in _imported(source):
            crossing += module in MODULES and importer.split(".")[:2] != module.split(".")[:2]
            if _is_behind(importer, module):
                behind.append(f"{source}:{line} imports {module}")
    assert crossing > 1500, "the count sees no imports"
    assert not behind, "\n".join(behind)


def test_each_imported_name_is_there() -> None:
    """``mypy`` takes any name of a face that imports lazily, and a name for types alone is missed by no other test."""
    missing = []
    for source in SOURCES:
        for node in _imports(source):
            if isinstance(node, ast.ImportFrom) and node.module in MODULES:
                there = importlib.import_module(node.module)
                missing += [
                    f"{source}:{node.lineno} imports {alias.name} of {node.module}"
                    for alias in node.names
                    if not hasattr(there, alias.name) and f"{node.module}.{alias.name}" not in MODULES
                ]
    assert not missing, "\n".join(missing)


def test_each_package_has_a_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    held = {
        module.removesuffix(".**")
        for contract in contracts["contracts"]
        if contract["type"] == "protected" and contract["name"].startswith("Only ")
        for module in contract["protected_modules"]
    }
    assert held == FACES


def test_a_group_has_nothing_but_packages() -> None:
    grouped = [name for name in MODULES if name.rpartition(".")[0] in GROUPS]
    assert {*grouped} <= FACES
    assert all("__all__" not in _text_of(group) for group in GROUPS)


def test_few_modules_are_loose_at_the_top() -> None:
    for top in HELD:
        loose = [name for name in MODULES if name.rpartition(".")[0] == top and name not in _PACKAGES]
        assert len(loose) <= MOST_LOOSE, "put these in a package: " + ", ".join(loose)
