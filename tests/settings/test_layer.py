"""Layers of settings: how each resolves a relative path."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.settings.environment_layer import environment_layer
from broker_core.settings.layer import options_layer, resolve_paths


def test_the_catalogue_of_a_variable_or_an_option_is_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variable = environment_layer({"BROKER_CORE_CATALOG__PATH": "t.sqlite"})
    option = options_layer({"--catalog": (("catalog", "path"), Path("t.sqlite"))})
    assert variable.values["catalog"]["path"] == option.values["catalog"]["path"] == tmp_path / "t.sqlite"


def test_only_settings_that_name_a_file_are_resolved(tmp_path: Path) -> None:
    values = {"catalog": {"path": "a"}, "log": {"file": "", "level": "info"}, "plugins": {"x": {"path": "b"}}}
    resolve_paths(values, tmp_path)
    assert values == {
        "catalog": {"path": tmp_path / "a"},
        "log": {"file": "", "level": "info"},
        "plugins": {"x": {"path": "b"}},
    }


def test_options_are_labelled_by_their_name() -> None:
    layer = options_layer(
        {"--pulsar": (("pulsar", "listen"), "127.0.0.1:0"), "--catalog": (("catalog", "path"), None)}
    )
    assert layer.values == {"pulsar": {"listen": "127.0.0.1:0"}}
    assert layer.label(("pulsar", "listen")) == "--pulsar"
