"""``[log.access]``: its bounds, and keys whose values are secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from broker_core.settings import AccessLogSettings, Settings, load_settings
from tests.support.narrowed import present


def test_there_is_none_without_the_table() -> None:
    assert Settings().log.access is None


def test_the_environment_can_set_it() -> None:
    environment = {
        "BROKER_CORE_LOG__ACCESS__PATH": "/var/log/access.jsonl",
        "BROKER_CORE_LOG__ACCESS__SAMPLE": "0.1",
        "BROKER_CORE_LOG__ACCESS__PROPERTIES": "region,team",
    }
    access = load_settings(environment=environment).settings.log.access
    assert access == AccessLogSettings(
        path=Path("/var/log/access.jsonl"), sample=0.1, properties=("region", "team")
    )


def test_a_path_of_the_file_is_taken_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('[log.access]\npath = "access.jsonl"\n')
    access = present(load_settings(tmp_path / "x.toml", environment={}).settings.log.access)
    assert access.path == tmp_path / "access.jsonl"
    assert (access.sample, access.properties) == (1.0, ())


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "path"),
        ({"path": ""}, "it names no file"),
        ({"path": "x", "sample": 1.1}, "sample"),
        ({"path": "x", "sample": -0.1}, "sample"),
        ({"path": "x", "properties": ["region", "api_token"]}, "'api_token' is the name of a secret"),
        ({"path": "x", "properties": ["password"]}, "is the name of a secret"),
    ],
)
def test_what_is_wrong_is_refused(table: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate({"log": {"access": table}})
