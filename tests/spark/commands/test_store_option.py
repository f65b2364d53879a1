"""The store of a command is that of its option, else that of the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.errors import BrokerCoreError
from broker_core_spark.commands.store_option import chosen_store


def test_the_option_comes_first(tmp_path: Path) -> None:
    assert chosen_store(str(tmp_path)).uri == str(tmp_path)


def test_else_it_is_the_store_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "broker-core.toml"
    config.write_text(f'[plugins.spark]\nstore = "{tmp_path}/generations"\n')
    monkeypatch.setenv("BROKER_CORE_CONFIG", str(config))
    assert chosen_store(None).uri == f"{tmp_path}/generations"


def test_without_either_the_error_says_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "broker-core.toml"
    config.write_text("")
    monkeypatch.setenv("BROKER_CORE_CONFIG", str(config))
    with pytest.raises(BrokerCoreError, match=r"no --store, and the settings name none: .*store"):
        chosen_store(None)
