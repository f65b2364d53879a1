"""Settings from the TOML file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker_core.settings.file_layer import file_layer, reread_layer, table_of_broken
from broker_core.settings.problems import SettingsError
from tests.support.files import file_with


def _file(folder: Path, text: str) -> Path:
    return file_with(folder / "broker-core.toml", text)


def test_a_file_is_toml(tmp_path: Path) -> None:
    layer = file_layer(_file(tmp_path, '[pulsar]\nlisten = "127.0.0.1:0"\n'))
    assert layer.values == {"pulsar": {"listen": "127.0.0.1:0"}}
    assert layer.label(("pulsar", "listen")) == f"{tmp_path / 'broker-core.toml'}: pulsar.listen"


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"a = ", "not valid TOML"), (b'a = "\xff"', "not valid TOML"), (b"[a]\n[a]", "not valid TOML")],
)
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    file = file_with(tmp_path / "broken.toml", content)
    with pytest.raises(SettingsError) as caught:
        file_layer(file)
    assert str(caught.value).startswith(f"{file}: {said}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.toml: cannot read the settings file: No such file"):
        file_layer(tmp_path / "absent.toml")
    with pytest.raises(SettingsError, match="Is a directory"):
        file_layer(tmp_path)


def test_the_catalogue_of_a_file_is_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc").mkdir()
    file = _file(tmp_path / "etc", '[catalog]\npath = "topics.sqlite"\n')
    monkeypatch.chdir(tmp_path)
    assert file_layer(file).values["catalog"]["path"] == tmp_path / "etc" / "topics.sqlite"
    assert file_layer(Path("etc") / file.name).values["catalog"]["path"] == tmp_path / "etc" / "topics.sqlite"
    absolute = file_layer(_file(tmp_path, '[catalog]\npath = "/var/lib/t.sqlite"\n'))
    assert absolute.values["catalog"]["path"] == Path("/var/lib/t.sqlite")


def test_the_log_of_a_file_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    assert file_layer(_file(tmp_path / "etc", '[log]\nfile = "a.log"\n')).values["log"]["file"] == (
        tmp_path / "etc" / "a.log"
    )
    assert file_layer(_file(tmp_path, '[log]\nfile = ""\n')).values["log"]["file"] == ""


def test_an_unknown_key_gets_the_nearest(tmp_path: Path) -> None:
    file = file_layer(_file(tmp_path, ""))
    assert file.unknown(("pulsar", "lisen")).endswith(
        "broker-core.toml: unknown key 'pulsar.lisen', did you mean 'pulsar.listen'?"
    )


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    assert file_layer(_file(tmp_path, "")).values == {}
    with pytest.raises(SettingsError, match="larger than a settings file may be"):
        file_layer(_file(tmp_path, "#" * 10_000_000))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('[admin]\nsocket = "a"\n[limits]\nx = \n', "a"),
        ('x = = 1\n [ admin ] # ours\n\nsocket = "a" # here\n', "a"),
        ('[admin]\nsocket = "a"\nx = = 1\n', "a"),
        ('admin.socket = "a"\nx = = 1\n[limits]\nsocket = "b"\n', "a"),
        ('[limits]\nadmin.socket = "a"\n[', None),
        ("[admin]\nsocket = \n", None),
        ('[limits]\nsocket = "a"\n[', None),
        ("\xff", None),
    ],
)
def test_one_table_of_a_file_that_is_broken(tmp_path: Path, text: str, found: str | None) -> None:
    table = table_of_broken(_file(tmp_path, text), "admin")
    assert table == ({} if found is None else {"socket": tmp_path / found})
    assert table_of_broken(tmp_path, "admin") == {}


def test_an_emptied_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="it has no setting, and a server runs by it"):
        reread_layer(_file(tmp_path, ""))


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SettingsError, match="it is no file that can be read again"):
        reread_layer(pipe)


def test_half_of_a_file_that_is_written_now_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _file(tmp_path, '[pulsar]\nlisten = "127.0.0.1:0"\n')
    written: list[float] = []

    def write(seconds: float) -> None:
        """What happens meanwhile: the rest is written, and then nothing more."""
        written.append(seconds)
        if len(written) == 1:
            with file.open("a") as stream:
                stream.write('[authentication]\nanonymous_role = "guest"\n')
        else:
            os.utime(file, (0, 0))

    monkeypatch.setattr("broker_core.settings.file_layer.time.sleep", write)
    assert reread_layer(file).values["authentication"] == {"anonymous_role": "guest"}
    assert len(written) == 2
    assert "authentication" in reread_layer(file).values
    assert len(written) == 2
