from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.settings import KafkaSettings, SettingsError, load_settings
from tests.support.files import file_with
from tests.support.narrowed import present


def load(tmp_path: Path, text: str, environment: dict[str, str] | None = None) -> KafkaSettings:
    file = file_with(tmp_path / "broker-core.toml", text)
    return present(load_settings(file, environment=environment or {}).settings.kafka)


def test_the_table_has_tables_of_its_own(tmp_path: Path) -> None:
    kafka = load(
        tmp_path,
        '[kafka]\n[kafka.namespaces]\n"User:orders-app" = "acme/orders"\n'
        '[kafka.configs]\n"retention.ms" = "1"\n'
        '[kafka.sasl]\nmechanisms = ["PLAIN"]\n[kafka.tls]\ncertificate = "a.pem"\nkey = "a.key"\n',
    )
    assert kafka.namespaces == {"User:orders-app": "acme/orders"}
    assert kafka.configs == {"retention.ms": "1"}
    assert kafka.sasl.mechanisms == ("PLAIN",)
    assert present(kafka.tls).certificate == tmp_path / "a.pem"


def test_a_table_in_the_environment_is_json(tmp_path: Path) -> None:
    kafka = load(tmp_path, "[kafka]\n", {"BROKER_CORE_KAFKA__NAMESPACES": '{"User:a": "x/y"}'})
    assert kafka.namespaces == {"User:a": "x/y"}
    with pytest.raises(SettingsError, match="the key 'User:a' is there twice"):
        load(tmp_path, "[kafka]\n", {"BROKER_CORE_KAFKA__NAMESPACES": '{"User:a": "x/y", "User:a": "x/z"}'})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('listen = "0.0.0.0:9092"', "kafka.advertised: it is required"),
        ('listen = "[0:0::0]:9092"', "kafka.advertised: it is required"),
        ('listen = "0:9092"', "kafka.advertised: it is required"),
        ('advertised = "h:0"', "port 0"),
        ('listen = "0.0.0.0:9092"\nadvertised = "0.0.0.0:9092"', "wildcard"),
        ('namespace = "orders"', "TENANT/NAMESPACE"),
        ('super_users = ["admin"]', "User:NAME"),
        ('[kafka.namespaces]\n"orders-app" = "a/b"', "User:NAME"),
        ('[kafka.namespaces]\n"User:a" = "b"', "TENANT/NAMESPACE"),
        ('[kafka.sasl]\nmechanisms = ["GSSAPI"]', "kafka.sasl.mechanisms"),
        (
            '[kafka.tls]\nlisten = "[::]:0"\ncertificate = "a"\nkey = "b"',
            "kafka.tls.advertised: it is required",
        ),
    ],
)
def test_what_cannot_be_is_an_error(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, f"[kafka]\n{text}\n")
    assert problem in str(refused.value)
