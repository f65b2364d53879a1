"""Rows of Kafka's administration in the catalogue: access control lists, and users with SCRAM credentials."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["AclRow", "ScramRow"]


class AclRow(NamedTuple):
    """One binding of an access control list; enumerations are Kafka's numbers.

    ``principal`` is ``User:NAME`` or ``User:*``, ``host`` an address or ``*``.
    """

    resource_type: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


class ScramRow(NamedTuple):
    """The SCRAM credential of a user of RFC 5802; its keys are secret, and not shown in its ``repr``."""

    name: str
    mechanism: str
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramRow(name={self.name!r}, mechanism={self.mechanism!r}, iterations={self.iterations})"
