from __future__ import annotations

import pytest
from pydantic import ValidationError

from broker_core.settings.models import HttpSettings, PulsarSettings, Settings, UpstreamSettings
from broker_core.settings.problems import dotted, findings, known_keys, nearest, table_model, what_is_wrong


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
        ("pulsar.path", "catalog.path"),
        ("service_url", "upstream.service_url"),
        ("http.metrics", "http.listen"),
    ],
)
def test_the_nearest_key(unknown: str, meant: str) -> None:
    assert dotted(nearest(tuple(unknown.split(".")), Settings)) == meant


def test_the_nearest_key_can_be_no_table() -> None:
    assert nearest(("pulsar",), Settings, leaves=True) in known_keys(Settings)
    assert len(nearest(("pulsar",), Settings, leaves=True)) == 2


def test_a_finding_shows_no_password() -> None:
    with pytest.raises(ValidationError) as caught:
        UpstreamSettings.model_validate({"service_url": "pulsar://me:hunter2" + "@broker:6650"})
    ((_, detail),) = findings(caught.value)
    assert "hunter2" not in what_is_wrong(detail)
    assert "@broker:6650" in what_is_wrong(detail)


def test_findings_are_in_plain_words() -> None:
    wrong = {
        "pulsar": {"listen": 3},
        "upstream": {},
        "patterns": {"unsupported": "x"},
        "plugins": {"enabled": ["a", 3]},
    }
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(wrong)
    said = {dotted(path): what_is_wrong(detail) for path, detail in findings(caught.value)}
    assert said == {
        "pulsar.listen": "3 is not HOST:PORT such as '127.0.0.1:6650' (port 0: a free one)",
        "upstream.service_url": "it must be set",
        "patterns.unsupported": "'x': input should be 'unfiltered' or 'error'",
        "plugins.enabled": "3: input should be a valid string",
    }
