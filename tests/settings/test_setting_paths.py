"""The known settings, and the most likely meaning of an unknown name."""

from __future__ import annotations

import pytest

from broker_core.settings.models import HttpSettings, PulsarSettings, Settings
from broker_core.settings.setting_paths import (
    FILES,
    KEY_SOURCES,
    LISTS,
    dotted,
    known_keys,
    nearest,
    table_model,
)


def test_known_keys_are_tables_and_values() -> None:
    known = known_keys(Settings)
    assert known[("pulsar",)] is PulsarSettings
    assert known[("http",)] is HttpSettings
    assert known[("pulsar", "listen")] is None
    assert ("plugins", "enabled") in known
    assert table_model(PulsarSettings, "listen") is None


@pytest.mark.parametrize(
    ("unknown", "meant"),
    [
        ("pulsar.lisen", "pulsar.listen"),
        ("pulsr", "pulsar"),
        ("limits.heap", "limits.heap_permits"),
        ("limits.permits_timeout", "limits.permit_timeout"),
        ("pulsar.snapshots_bytes", "catalog.snapshots_bytes"),
        ("service_url", "upstream.service_url"),
        ("http.listens", "http.listen"),
    ],
)
def test_the_nearest_key(unknown: str, meant: str) -> None:
    assert dotted(nearest(tuple(unknown.split(".")), Settings)) == meant


def test_the_nearest_key_can_be_no_table() -> None:
    assert nearest(("pulsar",), Settings, leaves=True) in known_keys(Settings)
    assert len(nearest(("pulsar",), Settings, leaves=True)) == 2


def test_lists_and_files_are_known_by_their_types() -> None:
    assert {
        ("plugins", "enabled"),
        ("catalog", "property_keys"),
        ("authentication", "token", "algorithms"),
    } <= LISTS
    assert {("catalog", "path"), ("log", "file"), ("authentication", "basic", "file")} <= FILES
    assert {("authentication", "token", "key"), ("authentication", "token", "jwks")} <= KEY_SOURCES
    assert not FILES & KEY_SOURCES
