"""The TOML file as a running server reads it again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker_core.settings.problems import SettingsError
from broker_core.settings.reread_file import reread_layer
from tests.support.files import file_with


def _file(folder: Path, text: str) -> Path:
    return file_with(folder / "broker-core.toml", text)


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

    monkeypatch.setattr("broker_core.settings.reread_file.time.sleep", write)
    assert reread_layer(file).values["authentication"] == {"anonymous_role": "guest"}
    assert len(written) == 2
    assert "authentication" in reread_layer(file).values
    assert len(written) == 2
