"""Users of Kafka's SASL without a catalogue, and requests to a session, for tests."""

from __future__ import annotations

from broker_core.access.authentication import Authenticator
from broker_core.kafka.scram.credentials import DECOY_USER, HASHES, ScramCredential, derive_credential
from broker_core.metrics.metrics import Metrics
from broker_core.servers.admission import FailurePace
from broker_core.servers.authentication import CredentialChecks, Expiries
from broker_core.servers.kafka.sasl.logins import Logins
from broker_core.settings import AuthenticationSettings, KafkaMechanism

__all__ = ["ALL", "StoredUsersOfTest", "logins_of"]

ALL: tuple[KafkaMechanism, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class StoredUsersOfTest:
    """The users by name, each with one password for both mechanisms of SCRAM."""

    def __init__(self, **passwords: str) -> None:
        self.rows: dict[tuple[str, str], ScramCredential] = {
            (name, mechanism): derive_credential(mechanism, password.encode())
            for name, password in passwords.items()
            for mechanism in HASHES
        }
        self.rows[DECOY_USER, ""] = ScramCredential("", 0, b"secret", b"", b"")
        self.asked: list[tuple[str, str]] = []

    def kafka_user(self, name: str, mechanism: str) -> ScramCredential | None:
        self.asked.append((name, mechanism))
        return self.rows.get((name, mechanism))


def logins_of(
    users: StoredUsersOfTest | None = None,
    authenticator: Authenticator | None = None,
    mechanisms: tuple[KafkaMechanism, ...] = ALL,
) -> Logins:
    """Checks without a server; nobody is slowed."""
    authenticator = authenticator or Authenticator(AuthenticationSettings())
    checks = CredentialChecks("kafka", authenticator, Metrics(), FailurePace(), Expiries())
    return Logins(mechanisms, checks, users)
