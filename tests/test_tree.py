"""Rules of the source tree that linters do not check."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from scripts.statements import GENERATED

ROOT = Path(__file__).parent.parent
MAX_LINES = 500

# Registries by name; private networks and folders of one machine by shape. If a pattern can, it begins with what it
# looks for, and then looks behind it: the search for a text takes a fiftieth of a try at each character.
_FORBIDDEN = {
    what: re.compile(pattern, re.MULTILINE)
    for what, pattern in {
        "an index of packages": r"(?:--(?:extra-)?index-url|--find-links)[ =]",
        "an address of a registry": r"https?://[^\s\"'<>)]*(?:artifactory|nexus|/simple\b|pypi\.|test\.pypi|files\.pythonhosted)",
        "an address with a password": r"://(?<=[a-z0-9+.-]://)[^\s/:@\"'{}<>]+:[^\s/@\"'{}<>]+@",
        "a private address": r"(?:://|@)(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}\b",
        "a private address with a port": r"1(?<!\w1)(?:0\.\d{1,3}|92\.168)\.\d{1,3}\.\d{1,3}:\d{2,5}\b",
        "a path of one machine": r"/(?<![\w./-]/)(?:" + r"work|root|home/\w+|Users/\w+|tmp/\w+|opt/wheels)/",
        "a conflict": r"(?:<{7}|>{7})(?<=^.{7}) ",
    }.items()
}
# A pronoun names nothing, "who" asks, "told" hides what is sent: a first line names the thing by a noun or a verb of
# the field.
_UNNAMED = re.compile(
    r"^(?:(?:The )?[Ss]ame|It|They|Them|Those|That|Whom?|Whoever|Someone)\b|\b[Ww]ho(?:m|ever)?\b"
    r"|(?<!`)\btold\b(?!`)|\b[Tt]hose of (?:these|those)\b|\bthat one(?=[.,)])"
)
# "Where" is for places: a condition is said with "if" or "when".
_CONDITION = re.compile(r"(?:``None``,?|\b[Ee]mpty|\bfalse|:exc:`[^`]+`,?)\s+(?:#:?\s+)?where\b")
#: Words in the names of classes, functions, arguments and variables that do not say what the thing is.
_VAGUE = re.compile(r"(?:^|_)(?:asked|behind|heard|stands|strangers?|tells?|told|untold|whom?)(?:_|$)")
#: Such words that stored files and answers have.
_WRITTEN = {
    "broker_core/pipeline/reports/finished_listings.py": {"last_asked"},
    "broker_core/servers/http/api/server_state.py": {"behind", "last_asked"},
    "broker_core/snapshots/stored/manifest.py": {"asked"},
}
#: Class names that stand twice, with the reason.
_TWICE = {
    **dict.fromkeys(
        ("ConfigOperation", "ConfigResourceType", "ConfigSource", "ConfigSynonym", "ConfigType"),
        "one thing: the server's, and the client's, which knows members of newer servers as unknown ones",
    ),
    "Operation": "public: of `broker_core.change_log`, and in Kafka's access control lists",
    "Page": "public: of a listing's plugin, and of the admin client's answers",
    "TopicListing": "public: of the lookup client, and of the admin client, where Kafka's own has this name",
}
_FIRST_LINES = re.compile(r'^ *r?"""(\S.*?)(?:"""|\n\n)', re.MULTILINE | re.DOTALL)
#: Beginnings of first lines in sources that lead to a name elsewhere, or ask in place of naming.
_ASIDE = re.compile(r"As\b|How\b|What\b|Which\b|Whether (?:it|they)\b")
#: Beginnings that only an ``__init__`` may have, below the name of its class: a parameter, an error.
_OF_PARAMETERS = re.compile(r"See\b|Raises\b|``\w+`` (?:is|are|has|have|gives?|holds?|says?|may|must)\b")
_TEXT = {
    "",
    ".py",
    ".pyi",
    ".md",
    ".toml",
    ".txt",
    ".yaml",
    ".yml",
    ".sh",
    ".sql",
    ".proto",
    ".cfg",
    ".xml",
    ".java",
    ".conf",
}


def tracked() -> list[Path]:
    """The files of the tree as git knows them (new ones too); in an unpacked source distribution all files."""
    try:
        said = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout.decode()
        names = [ROOT / name for name in said.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [path for path in ROOT.rglob("*") if ".venv" not in path.parts]
    return sorted(path for path in names if path.is_file())


FILES = tracked()
#: Where the tests of each package are.
PACKAGES = {
    Path("broker_core"): Path("tests"),
    Path("plugins/explorer/broker_core_explorer"): Path("tests/explorer"),
    Path("plugins/postgres/broker_core_postgres"): Path("tests/postgres"),
    Path("plugins/spark/broker_core_spark"): Path("tests/spark"),
}
SOURCES = [
    path.relative_to(ROOT)
    for path in FILES
    if path.suffix == ".py"
    and any(path.is_relative_to(ROOT / package) for package in PACKAGES)
    and not GENERATED.fullmatch(path.stem)
]


class _Named(NamedTuple):
    """A definition, an argument or a variable of a source, with the docstring of a definition."""

    source: Path
    line: int
    name: str
    is_class: bool
    docstring: str | None


class _Facts(NamedTuple):
    """What the tests ask of a source, read in one walk: its syntax tree takes long to make, and much memory to keep."""

    docstring: str | None
    #: Whether there is more in it than a docstring, imports, `__all__` and the version.
    has_code: bool
    named: list[_Named]
    imported: set[str]
    #: The line and the function of each call whose result is dropped.
    bare_calls: list[tuple[int, str]]


#: Most nodes of a tree, which no test asks about.
_OF_NO_USE = {
    ast.Load,
    ast.Store,
    ast.Constant,
    ast.Call,
    ast.keyword,
    ast.Tuple,
    ast.Subscript,
    ast.arguments,
}


def _read(source: Path) -> _Facts:
    tree = ast.parse((ROOT / source).read_text(encoding="utf-8"))
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    has_code = any(isinstance(node, definitions) for node in tree.body)
    facts = _Facts(ast.get_docstring(tree), has_code, [], set(), [])
    for node in ast.walk(tree):
        if type(node) in _OF_NO_USE:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                facts.named.append(_Named(source, node.lineno, name, False, None))
            case ast.arg():
                facts.named.append(_Named(source, node.lineno, node.arg, False, None))
            case ast.Module():
                facts.named.append(_Named(source, 1, "", False, facts.docstring))
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                is_class = isinstance(node, ast.ClassDef)
                named = _Named(source, node.lineno, node.name, is_class, ast.get_docstring(node))
                facts.named.append(named)
            case ast.Import():
                facts.imported.update(alias.name for alias in node.names)
            case ast.ImportFrom():
                facts.imported.add(node.module or "")
            case ast.Expr(value=ast.Call(func=called)):
                facts.bare_calls.append((node.lineno, ast.unparse(called)))
    return facts


@functools.cache
def _facts() -> dict[Path, _Facts]:
    return {source: _read(source) for source in SOURCES}


def _all_named() -> Iterator[_Named]:
    return chain.from_iterable(facts.named for facts in _facts().values())


def test_each_source_has_its_own_test() -> None:
    """``broker_core/x/y.py`` has ``tests/x/test_y.py``; a package with code of its own, ``tests/x/test_x.py``.

    A plugin's package has its tests in a folder of the plugin's name.
    """
    untested = []
    for source in SOURCES:
        if source.stem == "__main__" or (source.name == "__init__.py" and not _facts()[source].has_code):
            continue
        name = source.parent.name if source.name == "__init__.py" else source.stem
        package, tests = next(item for item in PACKAGES.items() if source.is_relative_to(item[0]))
        test = tests / source.parent.relative_to(package) / f"test_{name}.py"
        if not (ROOT / test).is_file():
            untested.append(f"{source} has no {test}")
    assert not untested, "\n".join(untested)


def test_a_source_stays_one_idea() -> None:
    lines = {source: len((ROOT / source).read_text(encoding="utf-8").splitlines()) for source in SOURCES}
    long = [
        f"{source} has {count} lines: is it two ideas?"
        for source, count in lines.items()
        if count > MAX_LINES
    ]
    assert not long, "\n".join(long)


def test_a_source_says_what_it_is() -> None:
    silent = [source for source, facts in _facts().items() if not facts.docstring]
    assert not silent, f"without a docstring: {silent}"


def test_a_class_name_stands_for_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for named in _all_named():
        if named.is_class and not named.name.startswith("_"):
            places.setdefault(named.name, []).append(f"{named.source}:{named.line}")
    twice = {name: found for name, found in places.items() if len(found) > 1}
    unjustified = [f"{name}: {', '.join(twice[name])}" for name in twice.keys() - _TWICE.keys()]
    assert not unjustified, "\n".join(unjustified)
    assert twice.keys() == _TWICE.keys(), f"these stand once now: {_TWICE.keys() - twice.keys()}"


def test_a_first_line_names_its_thing() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {first}"
        for path in FILES
        if path.suffix == ".py"
        for first in _FIRST_LINES.findall(path.read_text(encoding="utf-8"))
        if _UNNAMED.search(first)
    ]
    assert not found, "\n".join(found)


def test_a_first_line_of_a_source_begins_with_its_name() -> None:
    found = [
        f"{named.source}:{named.line}: {first.splitlines()[0]}"
        for named in _all_named()
        if (first := named.docstring)
        and (_ASIDE.match(first) or (named.name != "__init__" and _OF_PARAMETERS.match(first)))
    ]
    assert not found, "\n".join(found)


def test_a_name_says_what_the_thing_is() -> None:
    found = [
        f"{named.source}:{named.line}: {named.name}"
        for named in _all_named()
        if _VAGUE.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", named.name).lower())
        and named.name not in _WRITTEN.get(str(named.source), ())
    ]
    assert not found, "\n".join(found)


def test_a_condition_is_said_with_if() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in FILES
        if path.suffix == ".py" and path != Path(__file__)
        for text in (path.read_text(encoding="utf-8"),)
        if "where" in text  # said first, since each character may begin a match
        for match in _CONDITION.finditer(text)
    ]
    assert not found, "\n".join(found)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    yield from enumerate(path.read_text(encoding="utf-8").splitlines(), 1)


def test_the_tree_names_no_registry_and_no_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {what}: {match[0]}"
        for path in FILES
        if path.suffix in _TEXT and path != Path(__file__) and path.name != "LICENSE"
        for text in (path.read_text(encoding="utf-8"),)
        for what, pattern in _FORBIDDEN.items()
        for match in pattern.finditer(text)
    ]
    assert not found, "\n".join(found)


def test_the_core_imports_no_database_driver_and_no_spark() -> None:
    drivers = {"asyncpg", "psycopg", "pyspark"}
    for source in (source for source in SOURCES if source.parts[0] == "broker_core"):
        found = [name for name in _facts()[source].imported if name.split(".")[0] in drivers]
        assert not found, f"{source} imports {found}"


def test_no_task_is_left_to_the_garbage_collector() -> None:
    """A task without a reference may be collected while it runs; a bare ``create_task(...)`` statement keeps none."""
    for source, facts in _facts().items():
        for line, called in facts.bare_calls:
            assert not (called.endswith("create_task") and "group" not in called.lower()), (
                f"{source}:{line}: keep the task that {called} makes"
            )


def test_what_is_left_to_do_is_not_in_the_sources() -> None:
    unfinished = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|NotImplemented" + r"Error)\b")
    found = [
        f"{source}:{number}"
        for source in SOURCES
        for number, line in _lines(ROOT / source)
        if unfinished.search(line)
    ]
    assert not found, found


def test_the_lock_has_every_dependency_by_hash_and_no_address() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    locked = {match.group(1) for match in re.finditer(r"^([a-z0-9-]+)==", lock, re.MULTILINE)}
    wanted = {re.split(r"[<>=!~\[; ]", dependency)[0] for dependency in project["dependencies"]}
    assert wanted <= locked, f"run `make lock`: {wanted - locked}"
    assert "://" not in lock
    for requirement in re.split(r"\n(?=\S)", lock.strip()):
        assert "--hash=sha256:" in requirement, requirement
