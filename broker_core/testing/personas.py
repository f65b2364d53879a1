"""The identity of a test's connection: the role and the address that the test gives it.

No transport carries a role yet, and an address is what the network says. So the kit announces each persona to its own
server beforehand, under a name that nobody can guess, and the persona's connections give that name as their client's
version. Any other client has its own identity.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace

from broker_core.access import Asker
from broker_core.client import default_client_version
from broker_core.testing.make_request import address_of

__all__ = ["Persona", "Personas", "asker_of"]


@dataclass(frozen=True, slots=True)
class Persona:
    """An asker; ``None`` is the value that a connection of the kit has by itself. ``address`` is ``HOST`` or
    ``HOST:PORT``.
    """

    role: str | None = None
    address: str | None = None
    client_version: str | None = None

    def __post_init__(self) -> None:
        if self.address is not None:
            address_of(self.address)  # a ValueError in the test, not in the server

    @property
    def is_plain(self) -> bool:
        """Whether the persona changes nothing: a connection has these values by itself."""
        return self.role is None and self.address is None


class Personas:
    """The personas of one server, by the names that their connections give."""

    def __init__(self) -> None:
        self._known: dict[str, Persona] = {}

    def announce(self, persona: Persona) -> str:
        """The name that a connection of the persona gives as its client's version."""
        name = f"broker-core-testing-{secrets.token_hex(16)}"
        self._known[name] = persona
        return name

    def identify(self, asker: Asker) -> Asker:
        """The asker that the server sees in place of ``asker``."""
        persona = self._known.get(asker.client_version)
        return asker if persona is None else asker_of(persona, asker)


def asker_of(persona: Persona, asker: Asker) -> Asker:
    """``asker`` with all values of the persona."""
    return replace(
        asker,
        role=persona.role,
        remote_address=asker.remote_address if persona.address is None else address_of(persona.address),
        client_version=persona.client_version or default_client_version(),
    )
