"""Which settings are live, and what a file changes of those in force."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from broker_core.plugins import PluginRegistry
from broker_core.settings import (
    Settings,
    SettingsError,
    dotted,
    live_settings,
    merged,
    setting_changes,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_the_page_says_of_each_setting_whether_it_is_live() -> None:
    table = PAGE.read_text().partition("## Live settings")[2].partition("\n## ")[0]
    said = dict(re.findall(r"^\| `([\w.]+)` \| (live|restart) \|$", table, re.MULTILINE))
    assert said == {dotted(path): "live" if live else "restart" for path, live in live_settings()}


def test_the_page_names_the_live_keys_of_our_plugins() -> None:
    rows = re.findall(r"^\| `(postgres|spark)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    registry = PluginRegistry.load(["postgres", "spark"], {"spark": {"store": "memory:///"}})
    assert {name: set(re.findall(r"`(\w+)`", keys)) for name, keys in rows} == {
        plugin.name: plugin.live for plugin in registry
    }


def test_live_changes_are_taken_and_others_left() -> None:
    before = Settings.model_validate({"kafka": {"node_id": 1}, "plugins": {"p": {"a": 1, "b": 1}}})
    after = Settings.model_validate(
        {
            "log": {"level": "debug"},
            "kafka": {"node_id": 2, "configs": {"retention.ms": "1"}},
            "http": {},
            "plugins": {"p": {"a": 2, "b": 2}},
        }
    )
    live_keys = {"p": frozenset({"a"})}
    changes = {dotted(each.path): each.live for each in setting_changes(before, after, live_keys)}
    assert changes == {
        "log.level": True,
        "kafka.node_id": False,
        "kafka.configs": True,
        "http": False,
        "plugins.p.a": True,
        "plugins.p.b": False,
    }
    now = merged(before, after, live_keys)
    assert (now.log.level, now.http, now.plugins.table("p")) == ("debug", None, {"a": 2, "b": 1})
    assert now.kafka is not None
    assert (now.kafka.node_id, now.kafka.configs) == (1, {"retention.ms": "1"})


def test_a_live_setting_that_rests_on_one_that_needs_a_restart_is_refused() -> None:
    before = Settings.model_validate({"pulsar": {"tls": {"certificate": "c.pem", "key": "k.pem"}}})
    after = Settings.model_validate(
        {
            "pulsar": {"tls": {"certificate": "c.pem", "key": "k.pem", "client_ca": "ca.pem"}},
            "authentication": {"methods": ["tls"]},
        }
    )
    with pytest.raises(SettingsError, match=r"authentication\.methods: .*needs a restart"):
        merged(before, after, {})


def test_no_secret_is_shown() -> None:
    tables = ({"token": {"key": f"data:;base64,{text}"}} for text in ("b25l", "dHdv"))
    before, after = (Settings.model_validate({"authentication": table}) for table in tables)
    (change,) = setting_changes(before, after, {})
    assert change.shown == {"setting": "authentication.token.key", "before": "********", "after": "********"}
