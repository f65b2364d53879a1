from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.old_files import OLD_FILES, old_file
from tests.cli.conftest import Cli
from tests.support.files import file_with


def test_a_command_that_writes_says_which_file(cli: Cli, tmp_path: Path) -> None:
    """On standard error: what is on standard output may be read by a program."""
    path = tmp_path / "c.sqlite"
    assert cli("topics", "create", "a/b", "x", "--catalog", path).err.startswith(
        f"broker-core: made a new catalogue {path} (of --catalog)"
    )
    (tmp_path / "sub").mkdir()
    told = f"broker-core: wrote the catalogue {path}\n"
    by_another_way = tmp_path / "sub" / ".." / "c.sqlite"
    assert cli("topics", "create", "a/b", "y", "--catalog", by_another_way).err == told
    assert cli("topics", "set-properties", "a/b", "y", "k=v", "--catalog", path).err == told
    assert cli("topics", "delete", "a/b", "y", "--catalog", path).err == told
    assert not cli("topics", "show", "--catalog", path).err
    assert cli("topics", "delete", "a/b", "y", "--catalog", path).err.count("\n") == 1, "nothing was written"


def test_a_relative_path_of_the_settings_is_told_whole(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "s.toml").write_text('[catalog]\npath = "topics.sqlite"\n')
    monkeypatch.setenv("BROKER_CORE_CONFIG", str(tmp_path / "etc" / "s.toml"))
    assert f" {tmp_path / 'etc' / 'topics.sqlite'} (of " in cli("topics", "create", "a/b", "x").err
    said = cli("topics", "create", "a/b", "x", "--catalog", "topics.sqlite").err
    assert "there already" not in said, "it was named: that one is meant"
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "topics.sqlite").unlink()
    said = cli("topics", "create", "a/b", "x", "--config", "empty.toml").err
    assert f"there already: {tmp_path / 'etc' / 'topics.sqlite'} (--catalog or --config names it)" in said


def test_where_nothing_changed_nothing_was_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("x\ny\n")
    cli("topics", "import", "a/b", "names.txt")
    cli("topics", "set-properties", "a/b", "x", "k=v")
    untouched = f"broker-core: nothing changed in the catalogue {tmp_path / 'broker-core.sqlite'}\n"
    no_match = "broker-core: no topic of a/b matches 'a/b/z.*'"
    assert cli("topics", "import", "a/b", "names.txt").err == untouched
    assert cli("topics", "set-properties", "a/b", "x", "k=v").err == untouched
    assert cli("topics", "set-properties", "a/b", "--pattern", "a/b/x", "k=v").err == untouched
    for verb in (["delete"], ["set-properties", "k=w"]):
        said = cli("topics", verb[0], "a/b", *verb[1:], "--pattern", "a/b/z.*")
        assert said.code == 0
        assert said.err.startswith(no_match)
        assert said.err.endswith(untouched)
        assert cli("topics", verb[0], "a/b", *verb[1:], "--pattern", "a/b/z.*", "--dry-run").err.startswith(
            no_match
        )
    assert "wrote" in cli("topics", "delete", "a/b", "--pattern", "a/b/y").err


@pytest.mark.parametrize("name", OLD_FILES)
def test_a_catalogue_of_a_former_release_is_read_as_it_is_and_migrated_by_who_writes(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    path = old_file(name, tmp_path / "c.sqlite")
    before = path.read_bytes()
    reading = [
        ("topics", "show"),
        ("topics", "show", "persistent://public/default/orders"),
        ("topics", "export", "public/default", "-"),
        ("explain", "public/default"),
        ("topics", "create", "public/default", "x", "--dry-run"),
        ("topics", "delete", "public/default", "payments", "--dry-run"),
        ("topics", "set-properties", "public/default", "payments", "a=b", "--dry-run"),
    ]
    for words in reading:
        said = cli(*words, "--catalog", path)
        assert "migrated" not in said.err, words
        assert said.code == 0 or "No such option" in said.err, (words, said)
        assert path.read_bytes() == before, words
    config = file_with(tmp_path / "f.toml", f'[catalog]\npath = "{path}"\n[pulsar]\nlisten = "127.0.0.1:0"\n')
    checked = cli("check", "--config", config)
    assert "catalog.format" in checked.out
    assert f"from format {OLD_FILES[name]} to 3 at its start" in " ".join(checked.out.split())
    assert path.read_bytes() == before
    said = cli("topics", "create", "public/default", "x", "--catalog", path)
    copy = path.with_name(f"c.sqlite.format-{OLD_FILES[name]}.backup")
    did = (
        f"migrated the catalogue {path} from format {OLD_FILES[name]} to 3; as it was, it is kept in {copy}."
    )
    assert did in said.err
    assert said.err.endswith(f"broker-core: wrote the catalogue {path}\n")
    assert copy.exists()
    again = cli("topics", "create", "public/default", "y", "--catalog", path)
    assert again.err == f"broker-core: wrote the catalogue {path}\n"
    assert "catalog.format" not in cli("check", "--config", config).out


def test_deleted_ids_are_told_for_as_long_as_the_settings_say(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "f.toml"
    for delay, told in ((0, False), (60_000, True)):
        config.write_text(
            f'[catalog]\npath = "{tmp_path}/c.sqlite"\n[kafka]\ndelete_topic_delay_ms = {delay}\n'
        )
        made = cli("topics", "create", "a/b", "x", "--config", config)
        assert cli("topics", "delete", "a/b", "x", "--config", config).code == 0
        said = cli("topics", "describe", "--id", made.out.rpartition(" ")[2].strip(), "--config", config)
        assert ("and was deleted at" in said.err) is told
