"""Settings from the TOML file."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.settings.file_layer import FileLayer
from broker_core.settings.problems import SettingsError


def _file(folder: Path, text: str) -> Path:
    file = folder / "broker-core.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_is_toml(tmp_path: Path) -> None:
    layer = FileLayer(_file(tmp_path, '[pulsar]\nlisten = "127.0.0.1:0"\n'))
    assert layer.values == {"pulsar": {"listen": "127.0.0.1:0"}}
    assert layer.label(("pulsar", "listen")) == f"{tmp_path / 'broker-core.toml'}: pulsar.listen"


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"a = ", "not valid TOML"), (b'a = "\xff"', "not valid TOML"), (b"[a]\n[a]", "not valid TOML")],
)
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        FileLayer(file)
    assert str(caught.value).startswith(f"{file}: {said}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.toml: cannot read the settings file: No such file"):
        FileLayer(tmp_path / "absent.toml")
    with pytest.raises(SettingsError, match="Is a directory"):
        FileLayer(tmp_path)


def test_the_catalogue_of_a_file_is_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc").mkdir()
    file = _file(tmp_path / "etc", '[catalog]\npath = "topics.sqlite"\n')
    monkeypatch.chdir(tmp_path)
    assert FileLayer(file).values["catalog"]["path"] == tmp_path / "etc" / "topics.sqlite"
    assert FileLayer(Path("etc") / file.name).values["catalog"]["path"] == tmp_path / "etc" / "topics.sqlite"
    absolute = FileLayer(_file(tmp_path, '[catalog]\npath = "/var/lib/t.sqlite"\n'))
    assert absolute.values["catalog"]["path"] == Path("/var/lib/t.sqlite")


def test_the_log_of_a_file_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    assert FileLayer(_file(tmp_path / "etc", '[log]\nfile = "a.log"\n')).values["log"]["file"] == (
        tmp_path / "etc" / "a.log"
    )
    assert FileLayer(_file(tmp_path, '[log]\nfile = ""\n')).values["log"]["file"] == ""


def test_an_unknown_key_gets_the_nearest(tmp_path: Path) -> None:
    file = FileLayer(_file(tmp_path, ""))
    assert file.unknown(("pulsar", "lisen")).endswith(
        "broker-core.toml: unknown key 'pulsar.lisen', did you mean 'pulsar.listen'?"
    )
