"""SCRAM-SHA-256 and SCRAM-SHA-512 by the credentials of the catalogue's users: two tokens of the client."""

from __future__ import annotations

from broker_core.access.authentication import AuthenticationFailed
from broker_core.access.peer import Peer
from broker_core.kafka.scram.exchange import ScramExchange
from broker_core.kafka.scram.messages import ClientFirst, ScramError
from broker_core.servers.kafka.sasl.exchange import Accepted, SaslRefused
from broker_core.servers.kafka.sasl.logins import Logins, role_of
from broker_core.servers.kafka.sasl.plain_exchange import OTHER_AUTHZID

__all__ = ["ScramServerExchange"]


class ScramServerExchange:
    """One authentication. A user that does not exist is refused at its second token, as a wrong password is."""

    def __init__(self, mechanism: str, logins: Logins, peer: Peer) -> None:
        self._mechanism = mechanism
        self._logins = logins
        self._peer = peer
        self._user = ""
        self._exchange: ScramExchange | None = None

    async def step(self, token: bytes) -> bytes | Accepted:
        """The server's next token, or the end; raises :exc:`SaslRefused`."""
        try:
            if self._exchange is None:
                return await self._begin(ClientFirst.parse(token))
            return Accepted(role_of(self._user), self._exchange.final(token))
        except ScramError as error:
            raise SaslRefused(AuthenticationFailed("bad_password", str(error))) from None
        except AuthenticationFailed as error:
            raise SaslRefused(error) from None

    async def _begin(self, first: ClientFirst) -> bytes:
        async with self._logins.checks.turn(self._peer):
            credential = await self._logins.credential(self._mechanism, first.name)
        if first.authzid and first.authzid != first.name:
            raise SaslRefused(AuthenticationFailed("bad_role", "another authorization id"), OTHER_AUTHZID)
        self._user = first.name
        self._exchange = ScramExchange(first, credential)
        return self._exchange.first()
