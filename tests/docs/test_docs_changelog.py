"""CHANGELOG.md: the release of this tree has a section, and says what an upgrade does to each format there is."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from broker_core.catalog.store.schema import SCHEMA_VERSION
from broker_core_spark.format.segment_layout import FORMAT_VERSION
from tests.docs.pages import ROOT
from tests.support.distributions import CORE
from tests.support.narrowed import present

TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
MIGRATIONS = ROOT / "plugins" / "postgres" / "broker_core_postgres" / "schema" / "migrations"


def section() -> str:
    """What is said of the release of this tree."""
    version = re.escape(CORE.project["version"])
    found = re.search(
        rf"^## {version} \(\d{{4}}-\d\d-\d\d\)$(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL
    )
    assert found is not None, "the release has no section"
    return found[1]


def test_the_release_of_this_tree_is_the_last_one() -> None:
    first = present(re.search(r"^## (\S+)", TEXT, re.MULTILINE))
    assert first[1] == CORE.project["version"]


@pytest.mark.parametrize(
    ("what", "format_number"),
    [
        ("catalogue of topics", SCHEMA_VERSION),
        ("database of the PostgreSQL plugin", len(list(MIGRATIONS.glob("*.sql")))),
        ("generations of the Spark plugin", FORMAT_VERSION),
    ],
)
def test_the_formats_are_those_of_the_code(what: str, format_number: int) -> None:
    (row,) = (line for line in section().splitlines() if line.startswith(f"| {what}"))
    assert row.split("|")[2].strip() == str(format_number)


def test_both_readers_have_a_part_and_the_upgrade_comes_first() -> None:
    assert re.findall(r"^### (.*)$", section(), re.MULTILINE) == [
        "Upgrading",
        "For users",
        "For plugin authors",
    ]


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", TEXT):
        assert (ROOT / target).is_file(), target


def test_the_fragments_since_make_a_section() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "next", "--date", "2026-01-01"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "## next (2026-01-01)" in done.stdout
