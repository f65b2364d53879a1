"""How the settings of [kafka.upstream] become the way that a cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.client import CredentialsFailed
from broker_core.client.kafka import OAuthBearer, Plain, Sasl, Scram
from broker_core.kafka_gateway import cluster_options
from broker_core.settings import KafkaUpstreamSettings, UpstreamTlsSettings


def sasl_of(**own: object) -> Sasl | None:
    table = {"bootstrap_servers": ["a"], "sasl": own}
    return cluster_options(KafkaUpstreamSettings.model_validate(table)).sasl


async def test_addresses_and_tls() -> None:
    options = cluster_options(
        KafkaUpstreamSettings(
            bootstrap_servers=("a", "[::1]:9093"),
            tls=UpstreamTlsSettings(ca=Path("ca.pem"), verify_hostname=False),
        )
    )
    assert options.bootstrap == (("a", 9092), ("::1", 9093))
    assert options.tls is not None
    assert (options.tls.ca, options.tls.verify_hostname) == (Path("ca.pem"), False)
    assert options.sasl is None


async def test_credentials_are_read_for_each_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("pencil\n")
    plain = sasl_of(mechanism="PLAIN", user="gateway", password=f"file:{secret}")
    assert isinstance(plain, Plain)
    assert await plain.exchange().first() == b"\0gateway\0pencil"
    secret.write_text("pen\n")
    assert await plain.exchange().first() == b"\0gateway\0pen"
    monkeypatch.setenv("KAFKA_TOKEN", "a.b.c")
    token = sasl_of(mechanism="OAUTHBEARER", token="env:KAFKA_TOKEN")
    assert isinstance(token, OAuthBearer)
    assert b"a.b.c" in await token.exchange().first()
    scram = sasl_of(user="gateway", password=f"file:{secret}")
    assert isinstance(scram, Scram)
    assert scram.mechanism == "SCRAM-SHA-512"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("file:nowhere/secret", "kafka.upstream.sasl.password: cannot read"),
        ("env:NO_SUCH_VARIABLE", "kafka.upstream.sasl.password: the variable NO_SUCH_VARIABLE is not set"),
        ("data:;base64,/w==", "kafka.upstream.sasl.password: 'utf-8'"),
    ],
)
async def test_a_secret_that_cannot_be_read_says_which(source: str, said: str) -> None:
    plain = sasl_of(mechanism="PLAIN", user="gateway", password=source)
    assert plain is not None
    with pytest.raises(CredentialsFailed, match=said):
        await plain.exchange().first()
