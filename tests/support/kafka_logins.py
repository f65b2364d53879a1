"""Users of Kafka's SASL without a catalogue, and requests to a session, for tests."""

from __future__ import annotations

from broker_core.access.authentication import Authenticator
from broker_core.access.peer import Peer
from broker_core.catalog import ScramRow
from broker_core.kafka.scram.credentials import DECOY_USER, HASHES, derive_credential
from broker_core.metrics.metrics import Metrics
from broker_core.service import Admission, LoginAttempt, Logins
from broker_core.settings import AuthenticationSettings, KafkaMechanism, KafkaSettings

__all__ = ["ALL", "StoredUsersOfTest", "attempt_of_kafka", "kafka_settings", "logins_of"]

ALL: tuple[KafkaMechanism, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class StoredUsersOfTest:
    """The users by name, each with one password for both mechanisms of SCRAM."""

    def __init__(self, **passwords: str) -> None:
        self.rows: dict[tuple[str, str], ScramRow] = {}
        for name, password in passwords.items():
            for mechanism in HASHES:
                self.put(name, mechanism, password)
        self.rows[DECOY_USER, ""] = ScramRow("", "", 0, b"secret", b"", b"")
        self.asked: list[tuple[str, str]] = []

    def put(self, name: str, mechanism: str, password: str) -> None:
        """Store a password, in place of a former one."""
        made = derive_credential(mechanism, password.encode())
        self.rows[name, mechanism] = ScramRow(
            name, mechanism, made.iterations, made.salt, made.stored_key, made.server_key
        )

    def kafka_user(self, name: str, mechanism: str) -> ScramRow | None:
        self.asked.append((name, mechanism))
        return self.rows.get((name, mechanism))

    def kafka_users(self) -> list[ScramRow]:
        return list(self.rows.values())


def logins_of(users: StoredUsersOfTest | None = None, authenticator: Authenticator | None = None) -> Logins:
    """Checks without a server."""
    authenticator = authenticator or Authenticator(AuthenticationSettings())
    return Logins(Admission(authenticator, Metrics()), users)


def kafka_settings(**more: object) -> KafkaSettings:
    """The settings of a server with all mechanisms."""
    return KafkaSettings.model_validate({"sasl": {"mechanisms": ALL}, **more})


def attempt_of_kafka() -> LoginAttempt:
    """An attempt of one client to get in."""
    return LoginAttempt(Peer("192.0.2.1:1", "kafka"), "test")
