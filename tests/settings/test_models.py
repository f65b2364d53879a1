from __future__ import annotations

import pytest
from pydantic import ValidationError

from broker_core.quantities import ListenAddress
from broker_core.settings.models import (
    HttpSettings,
    LimitsSettings,
    LogSettings,
    PluginsSettings,
    PulsarSettings,
    Settings,
)
from broker_core.settings.setting_paths import dotted, known_keys, table_model
from broker_core.settings.upstream_model import UpstreamSettings


def test_defaults_are_those_of_the_documentation() -> None:
    settings = Settings()
    assert settings.model_dump(mode="json") == {
        "pulsar": {
            "listen": "127.0.0.1:6650",
            "advertised": "",
            "max_message_size": "5MB",
            "advertise_frame": "same",
            "max_listing": "256MB",
            "keep_alive": "30s",
            "write_timeout": "15s",
            "min_write_rate": "256KB",
            "drain_delay": "0s",
            "drain_timeout": "10s",
            "haproxy_from": [],
            "tls": None,
        },
        "authorization": {"mode": "auto", "super_roles": [], "rules": []},
        "shrink_guard": {
            "enabled": True,
            "max_ratio": 0.5,
            "min_topics": 10,
            "hold": "1h",
            "file": "",
            "namespaces": [],
        },
        "authentication": {
            "methods": [],
            "anonymous_role": "",
            "proxy_roles": [],
            "token": None,
            "basic": None,
        },
        "http": None,
        "kafka": None,
        "admin": {"socket": ""},
        "catalog": {
            "path": "broker-core.sqlite",
            "mode": "0600",
            "property_keys": [],
            "snapshots": "folder",
            "snapshots_bytes": "2GB",
            "warm_within": "5s",
        },
        "upstream": None,
        "patterns": {"evaluate": True, "max_length": 1024, "unsupported": "unfiltered"},
        "limits": {
            "connections": "auto",
            "connections_per_address": 0,
            "heap_permits": "100MB",
            "direct_permits": "100MB",
            "snapshots": "512MB",
            "permit_timeout": "25s",
            "permit_queue": 1000,
            "concurrent_lookups": 50000,
            "properties": 64,
            "property_bytes": "16KB",
        },
        "quotas": [],
        "watchers": {"enabled": True, "interval": "30s", "most": 100000},
        "plugins": {"enabled": []},
        "log": {"level": "info", "format": "auto", "file": "", "access": None},
        "tracing": None,
    }


def test_settings_built_in_code_read_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_CORE_PULSAR__LISTEN", "127.0.0.1:1")
    monkeypatch.setenv("PULSAR", "{}")
    monkeypatch.setenv("LOG", '{"level": "debug"}')
    assert Settings() == Settings(pulsar=PulsarSettings())
    assert Settings().log.level == "info"


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().pulsar.listen = ListenAddress("::", 1)


def test_every_setting_says_what_it_is_for() -> None:
    for path, table in known_keys(Settings).items():
        if table is not None:
            assert table.__doc__, path
            for key, value in table.model_fields.items():
                assert value.description or table_model(table, key), f"{dotted(path)}.{key}"


def test_plugins_have_free_tables() -> None:
    plugins = PluginsSettings.model_validate(
        {"enabled": ["tenant-filter"], "tenant-filter": {"deadline": "2s"}, "other": {"x": {"y": 1}}}
    )
    assert plugins.enabled == ("tenant-filter",)
    assert plugins.table("tenant-filter") == {"deadline": "2s"}
    assert plugins.table("absent") == {}
    assert plugins.tables == {"tenant-filter": {"deadline": "2s"}, "other": {"x": {"y": 1}}}


def test_a_plugin_is_enabled_once() -> None:
    with pytest.raises(ValidationError, match="'a' is named twice"):
        PluginsSettings(enabled=("a", "b", "a"))


@pytest.mark.parametrize("url", ["pulsar://127.0.0.1:6651", "pulsar://a,b:6651", "pulsar+ssl://[::1]:6650/"])
def test_an_upstream_is_a_service_url(url: str) -> None:
    assert UpstreamSettings(service_url=url).service_url == url


@pytest.mark.parametrize("url", ["", "http://h:1", "pulsar+tls://h:1", "pulsar://", "pulsar://h:0", "h:6650"])
def test_another_url_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="service_url"):
        UpstreamSettings(service_url=url)


def test_bounds() -> None:
    for table in (
        {"pulsar": {"max_message_size": 100}},
        {"pulsar": {"max_message_size": 2**31}},
        {"pulsar": {"keep_alive": 0}},
        {"limits": {"permit_queue": 0}},
        {"limits": {"properties": -1}},
        {"patterns": {"unsupported": "ignore"}},
        {"log": {"level": "loud"}},
    ):
        with pytest.raises(ValidationError):
            Settings.model_validate(table)
    assert Settings.model_validate({"limits": {"heap_permits": 0}}).limits.heap_permits == 0


@pytest.mark.parametrize(("given", "understood"), [("auto", "auto"), (7, 7), ("500", 500)])
def test_connections_are_a_number_or_what_the_files_allow(given: object, understood: object) -> None:
    assert LimitsSettings.model_validate({"connections": given}).connections == understood


@pytest.mark.parametrize("given", [0, -1, True, "many", "", 1.5, None])
def test_connections_that_are_no_number_are_one_finding(given: object) -> None:
    with pytest.raises(ValidationError, match="not a number of connections, nor 'auto'") as error:
        LimitsSettings.model_validate({"connections": given})
    assert error.value.error_count() == 1


def test_an_empty_log_file_is_none() -> None:
    assert LogSettings.model_validate({"file": ""}).file is None
    assert LogSettings.model_validate({"file": "a.log"}).model_dump(mode="json")["file"] == "a.log"


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"authorization": {"mode": "allow"}, "authentication": {"methods": ["tls"]}}, "'allow' has no use"),
        (
            {"authorization": {"mode": "allow"}, "authentication": {"anonymous_role": "a"}},
            "'allow' has no use",
        ),
        ({"http": {"protect": True}}, "it needs authentication"),
        (
            {"authentication": {"anonymous_role": "a"}, "authorization": {"super_roles": ["a"]}},
            "'a' is the anonymous role",
        ),
    ],
)
def test_settings_of_access_that_do_not_go_together(tables: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate(tables)


def test_a_plugin_may_authenticate_those_who_are_asked_for_it() -> None:
    tables = {"http": {"protect": True}, "plugins": {"enabled": ["sso"]}}
    assert Settings.model_validate(tables).http == HttpSettings(protect=True)


@pytest.mark.parametrize(("text", "mode"), [("0600", 0o600), ("640", 0o640), ("0666", 0o666)])
def test_a_mode_is_octal_text(text: str, mode: int) -> None:
    settings = Settings.model_validate({"catalog": {"mode": text}})
    assert (settings.catalog.mode, settings.catalog.file_mode) == (f"{mode:04o}", mode)


@pytest.mark.parametrize("value", [600, 0o600, "0400", "0700", "rw", "06000", "0o600", True, None])
def test_what_is_no_mode(value: object) -> None:
    with pytest.raises(ValidationError, match="is not the mode of a file that its owner writes"):
        Settings.model_validate({"catalog": {"mode": value}})
