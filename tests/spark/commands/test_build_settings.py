"""Settings of ``broker-core spark build``: options that are given count before those of ``--config``."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.cli.command_tree import run
from broker_core_spark.batch import PublishGates
from broker_core_spark.commands.build_settings import property_keys, publish_gates
from broker_core_spark.settings import SparkSettings
from tests.support.files import file_with


def test_a_gate_is_the_one_that_is_given_else_that_of_the_settings() -> None:
    settings = SparkSettings(store="-", min_questions=7, max_question_loss=0.1)
    gates = publish_gates(settings, min_questions=None, max_topic_loss=0.0, allow_shrink=None)
    assert gates == PublishGates(7, 0.1, 0.0, settings.max_coverage_loss)


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
