from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest
from pydantic import ValidationError

from broker_core.settings import load_settings
from broker_core.settings.models import PulsarSettings
from broker_core.settings.problems import SettingsError
from broker_core.settings.setting_paths import FILES, LISTS
from broker_core.settings.tls_models import PulsarTlsSettings
from tests.support.files import file_with
from tests.support.narrowed import present


def test_a_relative_file_is_in_the_folder_of_the_settings(tmp_path: Path) -> None:
    file = file_with(
        tmp_path / "broker-core.toml",
        '[http.tls]\ncertificate = "a.pem"\nkey = "/b.key"\nclient_ca = "c.pem"\n',
    )
    loaded = load_settings(file, environment={}).settings
    assert loaded.http is not None
    tls = present(loaded.http.tls)
    assert (tls.certificate, tls.key, tls.client_ca) == (
        tmp_path / "a.pem",
        Path("/b.key"),
        tmp_path / "c.pem",
    )
    assert loaded.pulsar.tls is None


def test_the_settings_are_known_by_their_types() -> None:
    names = {
        (table, "tls", key) for table in ("pulsar", "http") for key in ("certificate", "key", "client_ca")
    }
    assert names <= FILES
    assert ("pulsar", "haproxy_from") in LISTS


def test_variables_of_the_environment_reach_the_tables() -> None:
    environment = {
        "BROKER_CORE_PULSAR__TLS__CERTIFICATE": "/a.pem",
        "BROKER_CORE_PULSAR__TLS__KEY": "/a.key",
        "BROKER_CORE_PULSAR__HAPROXY_FROM": "10.0.0.0/8, ::1",
    }
    pulsar = load_settings(environment=environment).settings.pulsar
    assert pulsar.tls == PulsarTlsSettings(certificate=Path("/a.pem"), key=Path("/a.key"))
    assert pulsar.haproxy_from == (ip_network("10.0.0.0/8"), ip_network("::1/128"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[pulsar.tls]\nkey = "a.key"', "pulsar.tls.certificate"),
        ('[pulsar.tls]\ncertificate = "a.pem"\nkey = ""', "pulsar.tls.key: it names no file"),
        ('[pulsar]\nhaproxy_from = ["10.0.0.1/8"]', "has host bits set"),
        ('[pulsar]\nhaproxy_from = ["proxy.example.com"]', "is not an address or a network"),
        ("[pulsar]\nhaproxy_from = [7]", "is not an address or a network"),
        ('[http.tls]\nadvertised = "a"', "unknown"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str) -> None:
    file = file_with(tmp_path / "broker-core.toml", text)
    with pytest.raises(SettingsError, match=message):
        load_settings(file, environment={})


def test_networks_print_as_they_are_written() -> None:
    pulsar = PulsarSettings.model_validate({"haproxy_from": ["10.0.0.0/8", "192.0.2.7"]})
    assert pulsar.model_dump(mode="json")["haproxy_from"] == ["10.0.0.0/8", "192.0.2.7/32"]
    with pytest.raises(ValidationError):
        PulsarSettings.model_validate({"haproxy_from": "10.0.0.0/8"})
