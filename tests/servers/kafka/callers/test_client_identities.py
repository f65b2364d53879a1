from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from broker_core.access.asker import Asker
from broker_core.access.authentication import AuthenticationFailed, Authenticator
from broker_core.access.peer import Peer
from broker_core.catalog import ScramRow, SqliteCatalog
from broker_core.kafka.scram.credentials import derive_credential
from broker_core.servers.kafka.callers.client_identities import ClientIdentities, verified_by_cluster
from broker_core.settings import AuthenticationSettings, KafkaSettings
from broker_core.upstream.kafka import ClusterOptions, KafkaCluster
from tests.support.kafka_logins import logins_of
from tests.support.kafka_serving import kafka_broker

PLAIN = Peer("192.0.2.1:5000", "kafka")
CERTIFIED = Peer("192.0.2.1:5000", "kafka", True, "orders-app")


def role(settings: dict[str, object], peer: Peer, *, sasl: bool = False) -> str | None:
    logins = logins_of(None, Authenticator(AuthenticationSettings.model_validate(settings)))
    kafka = KafkaSettings.model_validate({"sasl": {"mechanisms": ["PLAIN"] if sasl else []}})
    identities = ClientIdentities(kafka, logins.admission, logins)
    principal = identities.of_connection(peer)
    identities.close()
    logins.close()
    return None if principal is None else principal.role


def test_a_certificate_gives_a_role_where_the_settings_take_it() -> None:
    assert role({"methods": ["tls"]}, CERTIFIED) == "orders-app"
    assert role({"methods": ["tls"]}, CERTIFIED, sasl=True) == "orders-app"
    assert role({}, CERTIFIED) is None
    assert role({"methods": ["tls"]}, PLAIN) is None
    assert role({"methods": ["tls"], "proxy_roles": ["orders-app"]}, CERTIFIED) is None


def test_who_has_to_prove_nothing_has_the_role_for_it() -> None:
    assert role({"anonymous_role": "guest"}, PLAIN) == "guest"
    assert role({"anonymous_role": "guest"}, PLAIN, sasl=True) is None


def test_a_common_name_that_is_no_role_gives_none() -> None:
    assert role({"methods": ["tls"]}, Peer("192.0.2.1:1", "kafka", True, "a\nb")) is None


def test_the_namespace_is_that_of_the_principal() -> None:
    kafka = KafkaSettings(namespaces={"User:orders-app": "acme/orders", "User:ANONYMOUS": "acme/public"})
    identities = ClientIdentities(kafka)
    found = [str(identities.namespace(role)) for role in ("orders-app", "other", None)]
    assert found == ["acme/orders", "public/default", "acme/public"]
    assert str(ClientIdentities(KafkaSettings(namespace="a/b")).namespace(None)) == "a/b"


def test_a_program_may_change_who_somebody_is() -> None:
    def identify(asker: Asker) -> Asker:
        return replace(asker, role="changed")

    asker = ClientIdentities(KafkaSettings(), identify=identify).asker("alice", PLAIN, "x-1")
    assert (asker.role, asker.transport, asker.client_version) == ("changed", "kafka", "x-1")


async def test_clients_are_verified_by_the_cluster(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "catalog.sqlite") as catalog:
        made = derive_credential("SCRAM-SHA-256", b"pencil")
        catalog.put_kafka_user(
            ScramRow("alice", made.mechanism, made.iterations, made.salt, made.stored_key, made.server_key)
        )
    async with kafka_broker(tmp_path, sasl={"mechanisms": ["PLAIN"]}) as broker:
        assert broker.kafka_address is not None
        cluster = KafkaCluster(ClusterOptions((broker.kafka_address,)))
        assert (await verified_by_cluster(cluster, "basic", b"alice:pencil")).role == "alice"
        # A connection that is open already proves nothing of other credentials, nor of the same later.
        with pytest.raises(AuthenticationFailed) as refused:
            await verified_by_cluster(cluster, "basic", b"alice:pen")
        assert refused.value.reason == "bad_password"
        await broker.stop()
        with pytest.raises(AuthenticationFailed) as refused:
            await verified_by_cluster(cluster, "basic", b"alice:pencil")
        assert refused.value.reason == "overloaded"
        await cluster.stop()
