"""Settings of ``broker-core spark build``: options that are given count before those of ``--config``."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.cli.command_tree import run
from broker_core_spark.commands.build_settings import build_settings, property_keys
from tests.support.files import file_with


def test_an_option_that_is_given_counts_before_the_setting() -> None:
    given = build_settings(min_questions=None, max_topic_loss=0.0, keep_learned=0.0, always="known.jsonl")
    assert (given.max_topic_loss, given.keep_learned, given.always) == (0.0, 0.0, "known.jsonl")
    assert given.min_questions == build_settings().min_questions > 0


def test_keys_that_are_given_may_be_several_in_one_text() -> None:
    assert property_keys(["region, zone", "who", ""]) == ("region", "zone", "who")
    assert property_keys([""]) == ()


def test_plugins_that_cannot_be_loaded_ask_for_the_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = file_with(tmp_path / "broker-core.toml", '[plugins]\nenabled = ["not-there"]\n')
    arguments = ["spark", "build", "--patterns", "no.jsonl", "--out", "no", "--config", str(settings)]
    arguments += ["--catalogue", "no.sqlite"]
    assert run(arguments) == 2
    assert "--property-keys" in capsys.readouterr().err
    assert run([*arguments, "--property-keys", "region"]) == 1
    assert "There is no catalogue no.sqlite" in capsys.readouterr().err
