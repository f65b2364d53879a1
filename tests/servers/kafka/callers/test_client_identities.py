from __future__ import annotations

from dataclasses import replace

from broker_core.access.asker import Asker
from broker_core.access.authentication import Authenticator
from broker_core.access.peer import Peer
from broker_core.servers.kafka.callers.client_identities import ClientIdentities
from broker_core.settings import AuthenticationSettings, KafkaSettings
from tests.support.kafka_logins import logins_of

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
