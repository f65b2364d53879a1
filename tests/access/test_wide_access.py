from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.wide_access import wide_settings
from broker_core.broker import Broker
from broker_core.cli.startup_checks.authorization_rules import authorization_checks
from broker_core.settings import Settings

SOME = {"plugins": {"enabled": ["logins"]}}  # that may say who clients are
NOBODY = "without authentication no client has a role, so everything is denied"
WIDE = {
    "pulsar": {"listen": "127.0.0.1:0", "haproxy_from": ["10.0.0.0/8", "0.0.0.0/0", "::/0"]},
    "http": {"listen": "127.0.0.1:0", "haproxy_from": ["::/0"]},
    "kafka": {"listen": "127.0.0.1:0", "haproxy_from": ["0.0.0.0/0"]},
    "authentication": {"proxy_roles": ["proxy", "other"]},
    "authorization": {"super_roles": ["admin", "proxy"]},
}
#: One rule of which two patterns are as if they were regular expressions or of a text with spaces.
DENIAL = {
    "roles": ["a"],
    "namespaces": ["acme/*"],
    "actions": ["list"],
    "effect": "deny",
    "topics": ["refunds-.*", " ledger", "orders.*", "a *", "*.*", "b-*"],
}


def test_what_is_bounded_is_not_warned_of() -> None:
    assert list(wide_settings(Settings())) == []
    bounded = {
        "pulsar": {"haproxy_from": ["10.0.0.0/8", "128.0.0.0/1"]},
        "plugins": {"enabled": ["logins"]},
        "authentication": {"proxy_roles": ["proxy"]},
        "authorization": {"super_roles": ["admin"]},
    }
    assert list(wide_settings(Settings.model_validate(bounded))) == []


def test_all_addresses_and_proxies_without_rules_are() -> None:
    found = list(wide_settings(Settings.model_validate(WIDE)))
    assert [(name, text.split(" ")[0]) for name, text in found] == [
        ("authorization", "without"),
        ("pulsar.haproxy_from", "0.0.0.0/0"),
        ("pulsar.haproxy_from", "::/0"),
        ("http.haproxy_from", "::/0"),
        ("kafka.haproxy_from", "0.0.0.0/0"),
        ("authorization.super_roles", "'proxy'"),
    ]


@pytest.mark.parametrize(
    ("tables", "warned"),
    [
        ({}, False),
        ({"http": {}}, False),
        ({"http": {"listen": "[::1]:80"}}, False),
        ({"http": {"listen": "192.0.2.1:80"}}, True),
        ({"http": {"listen": "192.0.2.1:80", "writes": False}}, False),
        ({"http": {"listen": "192.0.2.1:80", "api": False}}, False),
        ({"http": {"listen": "192.0.2.1:80"}, "authorization": {"super_roles": ["a"]}, **SOME}, False),
        ({"http": {"listen": "192.0.2.1:80"}, "upstream": {"service_url": "pulsar://192.0.2.2:6650"}}, False),
        ({"http": {"tls": {"listen": "192.0.2.1:443", "certificate": "c", "key": "k"}}}, True),
    ],
)
def test_changes_that_are_open_to_everybody_are(tables: dict[str, Any], warned: bool) -> None:
    found = [name for name, _ in wide_settings(Settings.model_validate(tables))]
    assert found == (["http.writes"] if warned else [])


def test_patterns_of_topics_that_match_nothing_by_habit_are() -> None:
    tables: dict[str, Any] = SOME | {
        "authorization": {"rules": [{**DENIAL, "topics": None, "effect": "allow"}, DENIAL]}
    }
    assert list(wide_settings(Settings.model_validate(tables))) == [
        (
            "authorization.rules.2.topics",
            "'refunds-.*' matches as it stands: `*` is any text, and `.` is a dot",
        ),
        (
            "authorization.rules.2.topics",
            "' ledger' matches as it stands: `*` is any text, and white space is a part of a name",
        ),
    ]
    tables["authorization"] |= {"mode": "allow"}  # nobody asks the rules
    assert list(wide_settings(Settings.model_validate(tables))) == []


async def test_check_and_the_start_say_so(tmp_path: Path) -> None:
    settings = Settings.model_validate(WIDE | {"catalog": {"path": tmp_path / "topics.sqlite"}})
    expected = list(wide_settings(settings))
    warned = [(each.name, each.text) for each in authorization_checks(settings) if each.level == "warning"]
    assert warned == expected
    assert expected[0] == ("authorization", NOBODY)
    with capture_logs() as logs:
        async with Broker(settings):
            pass
    events = [each["event"] for each in logs if each["log_level"] == "warning"]
    assert [f"{name}: {text}" for name, text in expected] == [
        event for event in events if event.startswith(("pulsar.", "http.", "kafka.", "authorization"))
    ]
    with capture_logs() as logs:
        async with Broker(settings, identify=lambda asker: asker):
            pass
    assert f"authorization: {NOBODY}" not in [each["event"] for each in logs]


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        ({"kafka": {}}, []),
        ({"kafka": {"listen": "192.0.2.1:9092"}}, ["kafka.listen"]),
        ({"kafka": {"listen": "192.0.2.1:9092", "super_users": ["User:admin"]}}, []),
        ({"kafka": {"listen": "192.0.2.1:9092"}, "authorization": {"super_roles": ["admin"]}, **SOME}, []),
        ({"kafka": {"listen": "192.0.2.1:9092", "sasl": {"mechanisms": ["SCRAM-SHA-256"]}}}, []),
        (
            {"kafka": {"listen": "192.0.2.1:9092", "sasl": {"mechanisms": ["PLAIN", "SCRAM-SHA-256"]}}},
            ["kafka.sasl.mechanisms"],
        ),
        ({"kafka": {"sasl": {"mechanisms": ["PLAIN"]}}}, []),
    ],
)
def test_kafka_open_to_other_machines_is_warned_of(tables: dict[str, Any], found: list[str]) -> None:
    assert [name for name, _ in wide_settings(Settings.model_validate(tables))] == found
