from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.cli.demo_catalog import NAMESPACE, demo_topics, prepare_demo, program
from broker_core.names import TopicName
from broker_core.settings import load_settings
from tests.support.narrowed import present


def test_the_first_start_fills_it_and_the_next_ones_leave_it_alone(tmp_path: Path) -> None:
    first = prepare_demo(tmp_path / "demo")
    assert first.filled
    with SqliteCatalog(first.catalog) as catalog:
        version = catalog.version(NAMESPACE)
        orders = present(catalog.topic(TopicName("persistent", NAMESPACE, "orders-eu")))
        assert (orders.partitions, orders.properties) == (3, {"region": "eu", "team": "sales"})
        catalog.delete(TopicName("persistent", NAMESPACE, "payments"))
    first.config.write_text(first.config.read_text() + "\n[log]\nlevel = 'debug'\n")
    again = prepare_demo(tmp_path / "demo")
    assert not again.filled
    assert load_settings(again.config, environment={}).settings.log.level == "debug"
    with SqliteCatalog(first.catalog) as catalog:
        assert catalog.version(NAMESPACE).number == version.number + 1
        assert catalog.topic(TopicName("persistent", NAMESPACE, "payments")) is None


def test_a_first_start_that_was_cut_short_is_the_first_start_again(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    SqliteCatalog(tmp_path / "demo" / "topics.sqlite").close()
    assert prepare_demo(tmp_path / "demo").filled


def test_it_shows_partitions_properties_and_unicode() -> None:
    topics = list(demo_topics())
    assert any(topic.get("partitions", 0) > 1 for topic in topics)
    assert any("region" in topic.get("properties", {}) for topic in topics)
    assert any(not topic["name"].isascii() for topic in topics)


def test_it_serves_on_loopback_only(tmp_path: Path) -> None:
    settings = load_settings(prepare_demo(tmp_path).config, environment={}).settings
    assert str(settings.pulsar.listen) == "127.0.0.1:6650"
    assert str(present(settings.http).listen) == "127.0.0.1:8080"


def test_the_page_is_served_if_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for found, enabled in (([], []), ([object()], ["explorer"])):
        monkeypatch.setattr("broker_core.cli.demo_catalog.entry_points", lambda found=found, **_which: found)
        settings = load_settings(prepare_demo(tmp_path / str(len(found))).config, environment={}).settings
        assert list(settings.plugins.enabled) == enabled


def test_how_the_command_is_typed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "my env" / "bin" / "broker-core"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.chdir(tmp_path)
    assert program(str(command)) == "'my env/bin/broker-core'"
    monkeypatch.chdir("/")
    assert program(str(command)) == f"'{str(command).lstrip('/')}'"
    monkeypatch.setenv("PATH", str(command.parent))
    assert program(str(command)) == "broker-core"


def test_the_hints_name_the_server_and_the_settings(tmp_path: Path) -> None:
    demo = prepare_demo(tmp_path / "a b")
    hints = demo.hints("pulsar://127.0.0.1:4711", "broker-core")
    assert len(hints) == 3
    assert sum("--url pulsar://127.0.0.1:4711" in hint for hint in hints) == 2
    assert f"--config '{demo.config}'" in hints[2]
