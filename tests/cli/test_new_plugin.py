"""Writing a new plugin from the templates."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from broker_core.cli.new_plugin import NameTaken, check_name, package_of, write_plugin
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.errors import BrokerCoreError
from broker_core.plugins.load.registry import RESERVED
from tests.support.fresh_environment import ROOT


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["acme-topics", "Acme_2", "q", "test-plugin", "x" * 64])
def test_a_project_is_written_with_its_name_everywhere(tmp_path: Path, name: str) -> None:
    project = write_plugin(name, tmp_path)
    package = package_of(name)
    assert project == tmp_path / name
    assert names(project) == {
        ".gitignore",
        "LICENSE",
        "README.md",
        "broker-core.toml",
        "pyproject.toml",
        *(
            f"src/{package}/{file}"
            for file in ("__init__.py", "commands.py", "plugin.py", "py.typed", "settings.py")
        ),
        f"tests/test_{package}.py",
    }
    for file in names(project):
        text = (project / file).read_text(encoding="utf-8")
        assert not re.search(r"\{\{\w|PACKAGE", text), file
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_its_license_is_this_one(tmp_path: Path) -> None:
    project = write_plugin("acme-topics", tmp_path)
    assert (project / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize(
    "name",
    ["", "-x", "x-", "_x", "x_", "3d", "a.b", "a/b", "../x", "a b", "é", "x" * 65, "x\n", ".", "class", "json", "src",
     "tests", *RESERVED],
)  # fmt: skip
def test_a_name_that_is_no_use_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnusableQuestion, match="cannot name a"):
        write_plugin(name, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["broker-core", "Broker_Core", "pydantic", "pyarrow", "prometheus-client", "postgres"]
)
def test_a_name_that_is_installed_is_refused(name: str) -> None:
    with pytest.raises(NameTaken, match="is installed already"):
        check_name(name)


@pytest.mark.parametrize("kind", ["file", "folder", "full folder", "link to nowhere"])
def test_what_is_there_stays_as_it_is(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "acme-topics"
    if kind == "file":
        target.write_text("mine")
    elif kind == "link to nowhere":
        target.symlink_to("nowhere")
    else:
        target.mkdir()
        if kind == "full folder":
            (target / "mine.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(NameTaken, match="acme-topics is there already"):
        write_plugin("acme-topics", tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Path.write_text
    files: list[Path] = []

    def until_the_disk_is_full(self: Path, text: str, encoding: str) -> int:
        files.append(self)
        if len(files) == 5:
            raise OSError(28, "No space left on device", str(self))
        return written(self, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", until_the_disk_is_full)
    with pytest.raises(BrokerCoreError, match=r"cannot write .*acme-topics: No space left"):
        write_plugin("acme-topics", tmp_path)
    assert len(files) == 5
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BrokerCoreError, match="cannot write"):
        write_plugin("acme-topics", tmp_path)


def test_it_has_the_rights_of_a_new_folder(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        project = write_plugin("acme-topics", tmp_path)
    finally:
        os.umask(before)
    assert project.stat().st_mode & 0o777 == 0o755
    assert (project / "README.md").stat().st_mode & 0o777 == 0o644
    shutil.rmtree(project)
