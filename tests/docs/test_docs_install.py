"""docs/how-to/install.md: its commands install the wheels, and no page gives pip the name of a distribution."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, read, tables
from tests.support.distributions import DISTRIBUTIONS
from tests.support.fresh_environment import offline_pythons

PAGE = "how-to/install.md"
UNIT = ROOT / "examples" / "serve_systemd"
#: pip, and then one of our names that is not a part of a file, a folder or an address.
_BY_NAME = re.compile(
    r"pip3? install [^\n`#]*?(?<![\w./=-])broker[-_]core(?:[-_](?:explorer|postgres|spark))?(?![\w-]*[/.])"
)
_SUFFIXES = {".cron", ".env", ".md", ".py", ".service", ".sh", ".sql", ".template", ".toml", ".txt", ".yaml"}
#: What says that nobody should do that.
WARNED = "would install"


def one_with(text: str) -> Block:
    (block,) = (block for block in blocks(PAGE) if text in block.text)
    return block


def test_the_table_has_the_distributions() -> None:
    table = tables(PAGE)[0]
    assert [row[:3] for row in table.rows] == [
        (f"`{each.name}`", f"`{each.package}`", f"`{each.folder.relative_to(ROOT)}`")
        for each in DISTRIBUTIONS
    ]
    (needs,) = {
        line
        for each in DISTRIBUTIONS
        for line in each.project["dependencies"]
        if line.startswith("broker-core")
    }
    assert f"`{needs}`" in read(PAGE)


@pytest.fixture
def machine(tmp_path: Path, wheels: list[Path]) -> Path:
    """A machine with what the page says is to be copied to it, whose pip fetches nothing."""
    (tmp_path / "dist").mkdir()
    for wheel in wheels:
        shutil.copy(wheel, tmp_path / "dist")
    (tmp_path / "requirements").mkdir()
    shutil.copy(ROOT / "requirements" / "run.txt", tmp_path / "requirements")
    (tmp_path / "programs").mkdir()
    offline_pythons(tmp_path / "programs")
    return tmp_path


def test_the_wheels_are_installed_as_it_says(machine: Path) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", one_with("python3 -m venv venv").text],
        cwd=machine,
        env={**os.environ, "PATH": f"{machine / 'programs'}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    for distribution in DISTRIBUTIONS:
        assert f"{distribution.name}-{distribution.project['version']}" in done.stdout
    assert f"broker-core {DISTRIBUTIONS[0].project['version']}\n" in done.stdout


def test_the_service_is_installed_in_the_same_way() -> None:
    """Two lines, on every page that makes the environment of a service."""
    lines = [
        line.strip() for line in one_with("/usr/bin/python3 -m venv /opt/broker-core\n").text.splitlines()
    ]
    for page in (UNIT / "README.md", ROOT / "examples" / "postgres_sync" / "README.md"):
        shown = [line.partition("  ")[0] for line in page.read_text(encoding="utf-8").splitlines()]
        start = shown.index(lines[0])
        assert shown[start : start + len(lines)] == lines, page


def test_the_files_of_the_service_are_there() -> None:
    for block in blocks(PAGE):
        for line in block.text.splitlines():
            if line.startswith("install ") and " -d " not in line:
                *_, file, _ = line.split()
                assert (UNIT / file).is_file()
    assert f"`examples/serve_systemd/{next(UNIT.glob('*.service')).name}`" in read(PAGE)


def texts() -> Iterator[tuple[Path, str]]:
    """What people and programs read of the tree, but for the tests."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if name not in ("_build", "dist", "tests") and (name[0] != "." or name == ".ci")
        ]
        for path in (Path(folder) / name for name in names):
            if path.suffix in _SUFFIXES or path.name in ("Containerfile", "Makefile"):
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def test_no_page_gives_pip_the_name_of_a_distribution() -> None:
    found = [
        f"{path}: {match[0]}"
        for path, text in texts()
        for match in _BY_NAME.finditer(text)
        if WARNED not in text[match.start() : match.end() + 20]
    ]
    assert not found


def test_what_counts_as_a_name() -> None:
    for command in ("broker-core", "'broker-core-spark[batch]'", "--quiet broker-core-postgres asyncpg"):
        assert _BY_NAME.search(f"pip install {command}")
    for command in (
        "dist/broker_core-*.whl",
        "pytest  # into the environment of broker-core",
        "./plugins/postgres",
    ):
        assert not _BY_NAME.search(f"pip install {command}")
