from __future__ import annotations

import pytest
from pydantic import ValidationError

from broker_core.settings import Settings, UpstreamSettings
from broker_core.settings.problems import findings, what_is_wrong
from broker_core.settings.setting_paths import dotted


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
