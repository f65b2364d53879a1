"""CONTRIBUTING.md: its table of places and its map of packages match the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT, anchors
from tests.test_tree import FILES

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
#: What the map is of: the folders of packages.
TOPS = (
    "broker_core",
    "plugins/explorer/broker_core_explorer",
    "plugins/postgres/broker_core_postgres",
    "plugins/spark/broker_core_spark",
)
_MODULE = re.compile(r"`(?P<path>[\w./-]+)` \((?P<names>`\w+`(?:, `\w+`)*)\)")


def section(heading: str) -> str:
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def rows() -> list[str]:
    """The rows of the table, without its head."""
    return [line for line in section("Where do I change X").splitlines() if line.startswith("|")][2:]


def paths(text: str) -> list[str]:
    """What is written as a path in backticks, or linked."""
    quoted = [
        path for path in re.findall(r"`([^` ]+)`", text) if "/" in path or path.endswith((".toml", ".py"))
    ]
    return [*quoted, *re.findall(r"\]\(((?!http)[^)#]+)", text)]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split("|")[1].strip())
def test_the_places_of_a_change_are_there(row: str) -> None:
    _, what, edit, tests, _ = row.split("|")
    assert what.strip()
    assert edit.strip()
    assert paths(tests)
    missing = [path for path in paths(row) if not (ROOT / path).exists()]
    assert not missing
    for module, names in _MODULE.findall(row):
        source = (ROOT / module).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", names):
            assert re.search(rf"\b{name}\b", source), f"{module} has no {name}"


def test_links_lead_somewhere() -> None:
    for path, anchor in re.findall(r"\]\(((?!http)[^)#]+)(?:#([\w-]+))?\)", TEXT):
        assert (ROOT / path).exists(), path
        assert not anchor or anchor in anchors(path.removeprefix("docs/")), f"{path}#{anchor}"


def mapped() -> Iterator[str]:
    """The paths of the map, by its indentation."""
    (block,) = re.findall(r"^```\n(.*?)^```$", section("How the code is laid out"), re.MULTILINE | re.DOTALL)
    above: list[str] = []
    for line in filter(None, block.splitlines()):
        depth = (len(line) - len(line.lstrip())) // 2
        path, _, text = line.strip().partition(" ")
        above = [*above[:depth], path.rstrip("/")]
        assert depth == 0 or text.strip() or path in ("servers/", "upstream/", "wire/"), (
            f"{path} says nothing"
        )
        yield "/".join(above)


def test_the_map_has_every_package_and_no_other() -> None:
    shown = list(mapped())
    assert len(shown) == len(set(shown))
    missing = [path for path in shown if not (ROOT / path).exists()]
    assert not missing, "of the map of CONTRIBUTING.md, these are not there"
    here = {path.relative_to(ROOT) for path in FILES}
    packages = {
        str(path.parent)
        for path in here
        if path.name == "__init__.py" and any(path.is_relative_to(top) for top in TOPS)
    }
    modules = {
        str(path)
        for path in here
        if str(path.parent) == "broker_core" and path.suffix == ".py" and path.name != "__init__.py"
    }
    assert packages | modules <= set(shown), "give these a line in the map of CONTRIBUTING.md"
