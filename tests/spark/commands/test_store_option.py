"""The store of a command is that of its option, else that of the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.errors import BrokerCoreError
from broker_core_spark.commands.store_option import chosen_options, chosen_store
from tests.support.files import file_with


def test_the_option_comes_first(tmp_path: Path) -> None:
    assert chosen_store(str(tmp_path)).uri == str(tmp_path)


def test_else_it_is_the_store_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = file_with(tmp_path / "broker-core.toml", f'[plugins.spark]\nstore = "{tmp_path}/generations"\n')
    monkeypatch.setenv("BROKER_CORE_CONFIG", str(config))
    assert chosen_store(None).uri == f"{tmp_path}/generations"


def test_without_either_the_error_says_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = file_with(tmp_path / "broker-core.toml", "")
    monkeypatch.setenv("BROKER_CORE_CONFIG", str(config))
    with pytest.raises(BrokerCoreError, match=r"no --store, and the settings name none: .*store"):
        chosen_store(None)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        (
            "s3://other/place",
            {"region": "given", "endpoint": "http://e", "allow_http": "true", "timeout": "5"},
        ),
        ("gs://other/place", {"region": "given"}),
        ("a/folder", {"region": "given"}),
    ],
    ids=["same", "other", "folder"],
)
def test_options_of_the_settings_are_for_buckets_of_their_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, expected: dict[str, str]
) -> None:
    config = file_with(
        tmp_path / "broker-core.toml",
        '[plugins.spark]\nstore = "s3://b/x"\n'
        'store_options = { region = "r", endpoint = "http://e", allow_http = true, timeout = 5 }\n',
    )
    monkeypatch.setenv("BROKER_CORE_CONFIG", str(config))
    assert chosen_options(uri, ["region=given"]) == expected
