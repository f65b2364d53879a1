"""What each pyproject.toml declares: dependencies by the imports, versions, license, links and classifiers."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.distributions import CORE, DISTRIBUTIONS, PLUGINS, ROOT, Distribution
from tests.support.import_statements import import_statements

#: Declared and imported nowhere, each with the reason.
NOT_IMPORTED = {
    ("broker-core-spark", "pandas"): "PySpark imports it to take an Arrow table",
}
#: Notices of others, of whose files modules are made: their license asks to pass them on.
NOTICES = {"broker-core": ["broker_core/wire/kafka/definitions/NOTICE"]}
#: Of packages whose distribution `importlib.metadata` does not know: editable ones, and what only `make test` installs.
OWNERS = {each.package: each.name for each in DISTRIBUTIONS} | {"pyspark": "pyspark"}
#: Of packages that several distributions share, by the longest name that is one's alone.
SHARED = {
    "google.protobuf": "protobuf",
    "opentelemetry": "opentelemetry-api",
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry.sdk": "opentelemetry-sdk",
}

every = pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)


@cache
def _owners() -> dict[str, list[str]]:
    return {
        package: sorted({canonicalize_name(owner) for owner in owners})
        for package, owners in packages_distributions().items()
    }


def _imports(source: str) -> Iterator[str]:
    """The names of every import of a module: those in functions and those for types alone too."""
    tree = ast.parse(source)
    for statement in import_statements(tree):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif statement.level == 0:
            yield statement.module or ""
    if "import_module" not in source:
        return
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name("import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(str(name)), *_],
            ):
                yield name


def _owners_of(name: str) -> list[str]:
    """The distributions that may have a module."""
    of_name = [shared for shared in SHARED if name == shared or name.startswith(f"{shared}.")]
    if of_name:
        return [SHARED[max(of_name, key=len)]]
    package = name.partition(".")[0]
    return [OWNERS[package]] if package in OWNERS else _owners().get(package, [f"(nobody has {name})"])


@cache
def imported(distribution: Distribution) -> dict[str, str]:
    """The distributions that a package imports, each with one file that does."""
    found: dict[str, str] = {}
    for file in sorted(distribution.sources.rglob("*.py")):
        for name in _imports(file.read_text(encoding="utf-8")):
            if name.partition(".")[0] in {*sys.stdlib_module_names, distribution.package}:
                continue
            owners = _owners_of(name)
            assert len(owners) == 1, f"{name} is of several distributions: {owners}"
            found.setdefault(owners[0], str(file.relative_to(ROOT)))
    return found


def requirements(lines: list[str]) -> dict[str, Requirement]:
    parsed = [Requirement(line) for line in lines]
    return {canonicalize_name(each.name): each for each in parsed}


def required(distribution: Distribution) -> dict[str, Requirement]:
    return requirements(distribution.project["dependencies"])


def extras(distribution: Distribution) -> dict[str, dict[str, Requirement]]:
    tables = distribution.project.get("optional-dependencies", {})
    return {extra: requirements(lines) for extra, lines in tables.items()}


def declared(distribution: Distribution) -> dict[str, Requirement]:
    """What a distribution requires, with and without its extras."""
    found = dict(required(distribution))
    for extra in extras(distribution).values():
        assert not found.keys() & extra.keys(), "what is required needs no extra"
        found |= extra
    return found


@every
def test_what_is_imported_is_declared(distribution: Distribution) -> None:
    undeclared = {
        name: file for name, file in imported(distribution).items() if name not in declared(distribution)
    }
    assert not undeclared


@every
def test_what_is_declared_is_imported(distribution: Distribution) -> None:
    unused = declared(distribution).keys() - imported(distribution).keys()
    assert unused == {name for owner, name in NOT_IMPORTED if owner == distribution.name}


def test_an_import_counts_wherever_it_is() -> None:
    source = """
import a.b
from c.d import e
from .f import g
if TYPE_CHECKING:
    import h
def late():
    import i
    importlib.import_module("j.k")
"""
    assert list(_imports(source)) == ["a.b", "c.d", "h", "i", "j.k"]


def test_one_library_has_one_lower_bound() -> None:
    """The distributions share one environment, made from the groups of the core's pyproject.toml."""
    bounds: dict[str, set[str]] = {}
    groups = CORE.pyproject["dependency-groups"]
    lines = [line for group in groups.values() for line in group if isinstance(line, str)]
    for requirement in [
        *(each for distribution in DISTRIBUTIONS for each in declared(distribution).values()),
        *requirements(lines).values(),
    ]:
        bounds.setdefault(canonicalize_name(requirement.name), set()).add(str(requirement.specifier))
    assert not {name: found for name, found in bounds.items() if len(found) > 1}


@pytest.mark.parametrize("plugin", PLUGINS, ids=str)
def test_the_environment_of_the_clone_has_what_a_plugin_needs(plugin: Distribution) -> None:
    """`make setup` installs the plugins without their dependencies: the lock is of the core's pyproject.toml."""
    groups = CORE.pyproject["dependency-groups"]
    in_setup = required(CORE).keys() | requirements(groups["plugins"]).keys()
    assert required(plugin).keys() - {CORE.name} <= in_setup
    in_tests = in_setup | requirements(groups["batch"]).keys()
    assert all(extra.keys() <= in_tests for extra in extras(plugin).values())


@pytest.mark.parametrize("plugin", PLUGINS, ids=str)
def test_a_plugin_is_of_the_release_of_the_core_and_takes_no_other_minor(plugin: Distribution) -> None:
    assert plugin.project["version"] == CORE.project["version"]
    version = Version(CORE.project["version"])
    wanted = required(plugin)[CORE.name].specifier
    assert str(wanted) == f"<{version.major}.{version.minor + 1},>={version.major}.{version.minor}"
    assert version in wanted


@every
def test_the_license_is_in_each(distribution: Distribution) -> None:
    assert distribution.project["license"] == "Apache-2.0"
    assert distribution.project["license-files"] == ["LICENSE", *NOTICES.get(distribution.name, [])]
    assert (distribution.folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@every
def test_a_distribution_says_what_it_is(distribution: Distribution) -> None:
    project = distribution.project
    assert project["name"] == distribution.name
    assert project["requires-python"] == CORE.project["requires-python"]
    assert project["readme"] == "README.md"
    assert project["description"]
    assert "pulsar" in project["keywords"]
    assert project["urls"] == CORE.project["urls"]
    assert all(len(label) <= 32 and url.startswith("https://") for label, url in project["urls"].items())
    classifiers = project["classifiers"]
    assert classifiers == sorted(classifiers)
    assert set(CORE.project["classifiers"]) <= set(classifiers)
    assert not any(each.startswith("License ::") for each in classifiers), "`license` says it"


def locked(name: str) -> dict[str, str]:
    """The pins of a file of requirements/, each with its version and its marker."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    pins = re.split(r"\n(?=\S)", text.strip())
    assert all("--hash=sha256:" in pin for pin in pins)
    parts = [pin.partition("==") for pin in pins]
    return {name: rest.partition("\\")[0].strip() for name, _, rest in parts}


@pytest.mark.parametrize("name", ["build", "run", "uv"])
def test_a_smaller_lock_has_the_versions_that_are_tested(name: str) -> None:
    assert locked(name).items() <= locked("dev").items()


def test_the_locks_have_what_runs_and_what_builds() -> None:
    wanted = set().union(*(required(each) for each in DISTRIBUTIONS)) - {each.name for each in DISTRIBUTIONS}
    assert wanted <= locked("run").keys()
    backends = [
        Requirement(line) for each in DISTRIBUTIONS for line in each.pyproject["build-system"]["requires"]
    ]
    assert {each.name for each in backends} <= locked("build").keys()


def test_no_lock_names_a_distribution_of_this_repository() -> None:
    """Names of these distributions are on no index: one that is there is a stranger's."""
    for name in ("batch", "build", "dev", "run", "uv"):
        assert not {each.name for each in DISTRIBUTIONS} & locked(name).keys()
