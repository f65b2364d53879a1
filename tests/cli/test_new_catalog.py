from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.cli.new_catalog import NewCatalog, catalogs_nearby
from broker_core.settings import LoadedSettings, load_settings
from tests.cli.conftest import Cli
from tests.support.files import file_with
from tests.support.narrowed import present


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    (tmp_path / "etc").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def said_of_new(loaded: LoadedSettings) -> str | None:
    new = NewCatalog.of(loaded)
    return None if new is None else new.text


def make(path: Path) -> None:
    SqliteCatalog(path).close()


def test_what_is_there_is_not_new(folder: Path) -> None:
    make(folder / "here" / "broker-core.sqlite")
    assert said_of_new(load_settings()) is None


def test_where_it_is_made_and_why(folder: Path) -> None:
    new = folder / "here" / "broker-core.sqlite"
    assert (
        said_of_new(load_settings()) == f"made a new catalogue {new} (by default: there is no settings file)"
    )
    file = file_with(folder / "etc" / "s.toml", "")
    new = folder / "etc" / "broker-core.sqlite"
    assert said_of_new(load_settings(file)) == f"made a new catalogue {new} (beside {file}, which names none)"
    file.write_text('[catalog]\npath = "../c.sqlite"\n')
    assert said_of_new(load_settings(file)) == (
        f"made a new catalogue {folder / 'c.sqlite'} (of {file}: catalog.path)"
    )


def test_those_that_may_have_been_meant_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    etc = folder / "etc"
    (etc / "s.toml").write_text('[catalog]\npath = "topics.sqlite"\n')
    make(etc / "topics.sqlite")
    assert catalogs_nearby(load_settings()) == []
    # The settings file of the environment, that an option overrides.
    monkeypatch.setenv("BROKER_CORE_CONFIG", str(etc / "s.toml"))
    empty = file_with(etc / "empty.toml", "")
    assert catalogs_nearby(load_settings(empty)) == [etc / "topics.sqlite"]
    monkeypatch.delenv("BROKER_CORE_CONFIG")
    # A settings file with the usual name in the working directory, which nobody named.
    (folder / "here" / "broker-core.toml").write_text('[catalog]\npath = "../etc/topics.sqlite"\n')
    assert catalogs_nearby(load_settings()) == [etc / "topics.sqlite"]
    # The same name in the working directory, where the settings mean their own folder.
    make(folder / "here" / "gone.sqlite")
    (etc / "s.toml").write_text('[catalog]\npath = "gone.sqlite"\n')
    assert folder / "here" / "gone.sqlite" in catalogs_nearby(load_settings(etc / "s.toml"))
    (folder / "here" / "broker-core.toml").write_text("no settings")
    assert catalogs_nearby(load_settings()) == []


async def test_a_server_says_it_in_its_log(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    new = present(NewCatalog.of(load_settings()))
    with new.for_server() as when_ready:
        await when_ready(None)
    said = capfd.readouterr()
    assert f"made a new catalogue {folder / 'here' / 'broker-core.sqlite'}" in said.out + said.err


def test_a_failed_import_has_made_one_and_says_so(cli: Cli, folder: Path) -> None:
    (folder / "here" / "names.txt").write_text("a/b/c/d/e\n")
    said = cli("topics", "import", "a/b", "names.txt").failed(1)
    assert [line.split()[1] for line in said.splitlines()] == ["made", "names.txt:"]
