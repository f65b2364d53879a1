"""Pages, anchors and files that comments and pages cite exist in this repository.

A number of a section or of a promise without its page is nobody's to look up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, anchors, read
from tests.test_tree import FILES

_TEXT = {
    ".py",
    ".pyi",
    ".md",
    ".toml",
    ".sql",
    ".sh",
    ".yaml",
    ".yml",
    ".proto",
    ".template",
    ".java",
    ".conf",
}
# All patterns begin with a text, and what is in front of it is looked at after it is found: in fifteen million
# characters the search for a text takes a twentieth of a try at each of them.
_PAGE = re.compile(r"docs/(?<![\w-]docs/)(?P<page>[\w/.-]+\.md)(?:#(?P<anchor>[\w-]+))?")
_NOBODY_HAS = {
    "a section of a reference": [r"[Rr](?<!\w[Rr])e[f]erences? \d"],
    "a number of a promise": [r"[Pp](?<!\w[Pp])romises? \d"],
    "a design document": [
        r"DESIGN(?<!\wDESIGN)\b",
        r"the design(?<!\wthe design) (?:says|document|page)",
        r"of the design(?<!\wof the design)\b",
    ],
    "a section": [
        r"§",
        r"ection \d(?<=\b[Ss]ection \d)",
        r" \((?<=[a-z] \()\d{1,2}\.\d{1,2}(?:, \d{1,2}\.\d{1,2})*\)[.:]?(?:\"\"\")?$",
    ],
    "a task": [
        r"the brief(?<!\wthe brief)\b",
        r"acceptance criteri(?<!\wacceptance criteri)",
        r"Shown by \d(?<!\wShown by \d)",
        r"abit \d(?<=\b[Hh]abit \d)",
    ],
}
#: Pages with the paths of packages and tests in them.
_MAPS = ("explanation/promises.md", "reference/pulsar-behaviour.md")


def sources() -> list[Path]:
    """Everything that people wrote here, but for what was recorded and this file."""
    return [
        path
        for path in FILES
        if (path.suffix in _TEXT or path.name == "Makefile")
        and path != Path(__file__)
        and not path.is_relative_to(ROOT / "tests" / "vectors")
        and not path.stem.endswith("_pb2")
    ]


@cache
def texts() -> list[tuple[Path, str]]:
    return [(path.relative_to(ROOT), path.read_text(encoding="utf-8")) for path in sources()]


def found_by(pattern: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
    """Each find, after its file and line; `$` is the end of a line."""
    for path, text in texts():
        for found in pattern.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}", found


def test_a_cited_page_and_its_anchor_are_there() -> None:
    cited = [(where, found["page"], found["anchor"]) for where, found in found_by(_PAGE)]
    wrong = [
        f"{where}: docs/{page}#{anchor or ''}"
        for where, page, anchor in cited
        if not (ROOT / "docs" / page).is_file() or (anchor is not None and anchor not in anchors(page))
    ]
    assert not wrong, "\n".join(wrong)
    assert len([anchor for _, _, anchor in cited if anchor]) > 20


def test_nothing_is_cited_that_nobody_has() -> None:
    found = [
        f"{where}: {what}: {match[0]}"
        for what, patterns in _NOBODY_HAS.items()
        for pattern in patterns
        for where, match in found_by(re.compile(pattern, re.MULTILINE))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", _MAPS)
def test_the_paths_of_a_page_are_there(page: str) -> None:
    cited = re.findall(r"`((?:broker_core|plugins|tests)/[\w/.-]*|tests/[\w/.-]+)`", read(page))
    assert cited
    assert not [path for path in cited if not (ROOT / path).exists()]


def test_a_module_beside_a_package_is_in_it() -> None:
    """``broker_core/listing/ (`topics_hash.py`)``: the names in brackets are below the path in front of them."""
    for folder, inside in re.findall(r"`([\w/]+/)` \(([^)]*)\)", read("explanation/promises.md")):
        for name in re.findall(r"`([\w./]+)`", inside):
            if name.endswith((".py", "/")):
                assert list((ROOT / folder).rglob(name.rstrip("/"))), f"{folder} has no {name}"
