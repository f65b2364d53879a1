"""SCRAM-SHA-256 and SCRAM-SHA-512 by the credentials of the catalogue's users: two tokens of the client."""

from __future__ import annotations

from broker_core.access import AuthenticationFailed
from broker_core.kafka.scram import ClientFirst, ScramError, ScramExchange
from broker_core.servers.kafka.sasl.exchange import Accepted, SaslRefused
from broker_core.servers.kafka.sasl.plain_exchange import OTHER_AUTHZID
from broker_core.service import LoginAttempt, Logins, OtherName, role_of

__all__ = ["ScramServerExchange"]


class ScramServerExchange:
    """One authentication. A user that does not exist is refused at its second token, as a wrong password is."""

    def __init__(self, mechanism: str, logins: Logins, attempt: LoginAttempt) -> None:
        self._mechanism = mechanism
        self._logins = logins
        self._attempt = attempt
        self._user = ""
        self._exchange: ScramExchange | None = None

    async def step(self, token: bytes) -> bytes | Accepted:
        """The server's next token, or the end; raises as :meth:`Exchange.step`."""
        try:
            if self._exchange is None:
                return await self._begin(ClientFirst.parse(token))
            last, principal = self._exchange.final(token), role_of(self._user)
        except ScramError as error:
            raise SaslRefused(AuthenticationFailed("bad_password", str(error))) from None
        except AuthenticationFailed as error:
            raise SaslRefused(error) from None
        return Accepted(await self._logins.admission.proven(self._attempt, principal), last)

    async def _begin(self, first: ClientFirst) -> bytes:
        credential = await self._logins.credential(self._attempt, self._mechanism, first.name)
        if first.authzid and first.authzid != first.name:
            raise SaslRefused(OtherName(), OTHER_AUTHZID)
        self._user = first.name
        self._exchange = ScramExchange(first, credential)
        return self._exchange.first()
