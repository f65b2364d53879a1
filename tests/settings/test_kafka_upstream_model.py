"""[kafka.upstream]: what does not go together is refused in words, and no password is shown anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.settings import KafkaSettings, LoadedSettings, SettingsError, load_settings, masked
from broker_core.settings.kafka_upstream_model import PortRange
from tests.support.narrowed import present

SASL = 'sasl = {user = "gateway", password = "file:secret"}\n'
PLAIN = '[kafka.sasl]\nmechanisms = ["PLAIN"]\n'


def load(tmp_path: Path, upstream: str, kafka: str = "", more: str = "") -> LoadedSettings:
    file = tmp_path / "broker-core.toml"
    servers = "" if "bootstrap_servers" in upstream else 'bootstrap_servers = ["a:9092"]\n'
    text = f"[kafka]\n{kafka}\n[kafka.upstream]\n{servers}{upstream}\n{more}"
    file.write_text(text, encoding="utf-8")
    return load_settings(file, environment={})


def of(loaded: LoadedSettings) -> KafkaSettings:
    return present(loaded.settings.kafka)


def test_a_cluster_behind_a_gateway(tmp_path: Path) -> None:
    loaded = load(
        tmp_path, 'bootstrap_servers = ["a", "[::1]:9093"]\nnamespace = "acme/kafka"\nports = 7000\n' + SASL
    )
    kafka = of(loaded)
    assert kafka.upstream is not None
    assert kafka.upstream.bootstrap_servers == ("a", "[::1]:9093")
    assert (kafka.upstream.forward, kafka.upstream.max_age, kafka.upstream.tls) == ("gateway", 10.0, None)
    assert (len(kafka.upstream.ports), 7000 in kafka.upstream.ports) == (1, True)
    assert kafka.clients_namespace == "acme/kafka"
    assert kafka.upstream.sasl is not None
    assert present(kafka.upstream.sasl.password).path == tmp_path / "secret"
    assert type(loaded.settings).model_validate(loaded.settings.model_dump(mode="json")) == loaded.settings


def test_without_one_clients_see_the_namespace_of_the_listener() -> None:
    assert KafkaSettings(namespace="acme/orders").clients_namespace == "acme/orders"


def test_a_password_in_the_settings_is_refused_and_never_shown(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"kafka\.upstream\.sasl\.password: it is none of") as refused:
        load(tmp_path, 'sasl = {user = "gateway", password = "hunter2"}')
    assert "hunter2" not in str(refused.value)
    path = ("kafka", "upstream", "sasl", "password")
    assert masked(path, "data:;base64,aHVudGVyMg==") == "********"


@pytest.mark.parametrize(
    ("upstream", "kafka", "more", "said"),
    [
        ("bootstrap_servers = []", "", "", "kafka.upstream.bootstrap_servers"),
        ('bootstrap_servers = ["kafka://a:1"]', "", "", "no HOST:PORT of a node"),
        ('bootstrap_servers = ["a:0"]', "", "", "no HOST:PORT of a node"),
        ('bootstrap_servers = ["a:1,b:1"]', "", "", "no HOST:PORT of a node"),
        ('namespace = "orders"', "", "", "TENANT/NAMESPACE"),
        ('timeout = "26s"', "", "", "kafka.upstream.timeout"),
        ('max_age = "0.5s"', "", "", "kafka.upstream.max_age"),
        ('ports = "19199-19100"', "", "", "the lower one first"),
        ('ports = "0-10"', "", "", "from 1 to 65535"),
        ('ports = "many"', "", "", "no range of ports"),
        ('ports = "9000-9100"', "", "", "kafka.upstream.ports: .*the port of kafka.listen"),
        ('sasl = {user = "a"}', "", "", "kafka.upstream.sasl.password: it must be set for SCRAM-SHA-512"),
        ('sasl = {mechanism = "OAUTHBEARER"}', "", "", "kafka.upstream.sasl.token: it must be set"),
        ('sasl = {mechanism = "OAUTHBEARER", token = "env:T", user = "a"}', "", "", "sasl.user: .*no use"),
        ('tls = {key = "a.pem"}', "", "", "kafka.upstream.tls.key: its certificate is missing"),
        ('forward = "client"\n' + SASL, "", "", "kafka.upstream.forward: .*none is set"),
        (
            'forward = "client"\n' + SASL,
            "",
            '[kafka.sasl]\nmechanisms = ["PLAIN", "SCRAM-SHA-256"]',
            'kafka.upstream.forward: "client" cannot pass SCRAM-SHA-256 on',
        ),
        ('forward = "client"', "", PLAIN, 'kafka.upstream.sasl: with kafka.upstream.forward = "client" too'),
        ("", 'namespace = "acme/orders"', "", "kafka.namespace: clients of a gateway see"),
        ("", 'super_users = ["User:a"]', "", "kafka.super_users: .*it has no use"),
        ("", 'namespaces = {"User:a" = "b/c"}', "", "kafka.namespaces: .*it has no use"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, upstream: str, kafka: str, more: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load(tmp_path, upstream, kafka, more)


def test_credentials_of_clients_are_passed_on(tmp_path: Path) -> None:
    kafka = of(load(tmp_path, 'forward = "client"\n' + SASL, more=PLAIN))
    assert present(kafka.upstream).forward == "client"


def test_a_range_prints_as_it_is_written() -> None:
    assert str(PortRange.parse(" 1 - 65535 ")) == "1-65535"
