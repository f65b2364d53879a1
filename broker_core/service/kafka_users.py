"""Users of the catalogue for Kafka's listener: the rules for names and passwords, and how they are stored.

The catalogue keeps no password, only the keys by which SCRAM verifies one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, Protocol

from broker_core.access import Principal
from broker_core.catalog import ScramRow
from broker_core.kafka.scram import DECOY_USER, derive_credential

__all__ = ["LONGEST_PASSWORD", "SHORTEST_PASSWORD", "check_password", "check_user", "store_user"]

#: Bytes of a password, at most.
LONGEST_PASSWORD: Final = 512
#: The fewest characters of a password: a machine that has the catalogue does not guess one within a day.
SHORTEST_PASSWORD: Final = 8


class _Users(Protocol):
    def kafka_user(self, name: str, mechanism: str) -> ScramRow | None: ...
    def put_kafka_user(self, *rows: ScramRow) -> None: ...


def check_user(name: str) -> None:
    """Raise :exc:`ValueError` for text that cannot be the name of a user."""
    try:
        Principal(name)
    except ValueError as error:
        raise ValueError(f"the {error}") from None
    if name.startswith("User:"):
        raise ValueError(f"give the name alone; its principal would be User:{name}")


def check_password(password: bytes, *, short: str | None) -> None:
    """Raise :exc:`ValueError`, which does not show the password, for one that cannot be stored.

    ``short`` says, for the text, how a short password can be allowed; ``None``: it is allowed.
    """
    if not password:
        raise ValueError("a password has a character at least")
    if len(password) > LONGEST_PASSWORD:
        raise ValueError(f"a password has at most {LONGEST_PASSWORD} bytes")
    if b"\x00" in password or b"\n" in password:
        raise ValueError("a password is one line without zero bytes")
    if short is not None and len(password.decode(errors="replace")) < SHORTEST_PASSWORD:
        raise ValueError(
            f"a password has at least {SHORTEST_PASSWORD} characters, as fewer are soon guessed; {short} takes it"
        )


def store_user(users: _Users, name: str, password: bytes, mechanisms: Sequence[str]) -> None:
    """Store a user's password for these mechanisms, in one transaction; long work, for a thread.

    With the first user, a secret is stored that makes names without a user look like users.
    """
    rows = []
    for mechanism in mechanisms:
        made = derive_credential(mechanism, password)
        rows.append(ScramRow(name, mechanism, made.iterations, made.salt, made.stored_key, made.server_key))
    if users.kafka_user(DECOY_USER, "") is None:
        rows.append(ScramRow(DECOY_USER, "", 0, os.urandom(32), b"", b""))
    users.put_kafka_user(*rows)
