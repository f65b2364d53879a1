from __future__ import annotations

import pytest
from pydantic import ValidationError

from broker_core.settings import Settings, UpstreamSettings
from broker_core.settings.problems import findings, what_is_wrong
from broker_core.settings.setting_paths import dotted


def test_a_finding_shows_no_password() -> None:
    with pytest.raises(ValidationError) as caught:
        UpstreamSettings.model_validate({"service_url": "pulsar://me:hunter2" + "@broker:6650"})
    (finding,) = findings(caught.value)
    said = what_is_wrong(finding.detail)
    assert "hunter2" not in said
    assert "not given in a URL" in said


def test_findings_are_in_plain_words() -> None:
    wrong = {
        "pulsar": {"listen": 3},
        "upstream": {},
        "patterns": {"unsupported": "x"},
        "plugins": {"enabled": ["a", 3]},
    }
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(wrong)
    said = {dotted(each.path): what_is_wrong(each.detail) for each in findings(caught.value)}
    assert said == {
        "pulsar.listen": "3 is not HOST:PORT such as '127.0.0.1:6650' (port 0: a free one)",
        "upstream.service_url": "it must be set",
        "patterns.unsupported": "'x': input should be 'unfiltered' or 'error'",
        "plugins.enabled": "3: input should be a valid string",
    }


def test_a_table_of_a_list_has_its_number_and_each_mistake_one_finding() -> None:
    rules = [
        {"roles": ["a"], "namespaces": ["a/b"], "actions": ["list"]},
        {"role": ["a"], "namespaces": ["a/b"], "actions": ["list"]},
        {"roles": [], "namespaces": ["a/b"], "actions": ["lizt"]},
        {"roles": ["a"], "actions": ["list"], "namespaces": ["a/b"], "zzz": 1},
        {"namespaces": ["a/b"], "actions": ["list"]},
    ]
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"authorization": {"rules": rules}})
    found = findings(caught.value)
    assert {dotted(each.numbered): what_is_wrong(each.detail) for each in found} == {
        "authorization.rules[2].role": "unknown setting, did you mean 'roles'?",
        "authorization.rules[3].roles": "it is empty, and needs at least one role",
        "authorization.rules[3].actions": "'lizt': input should be 'list', 'lookup', 'monitor', 'admin' or '*'",
        "authorization.rules[4].zzz": "unknown setting",
        "authorization.rules[5].roles": "it must be set",
    }
    assert {each.path[:2] for each in found} == {("authorization", "rules")}


def test_a_conflict_is_about_tables() -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"http": {"protect": True}})
    (finding,) = findings(caught.value)
    assert finding.path == finding.numbered == ("http", "protect")
    assert finding.is_about(("http", "listen"))
    assert finding.is_about(("authentication", "token", "key"))
    assert finding.is_about(("authentication",))
    assert not finding.is_about(("pulsar", "listen"))
