"""SASL of one connection: the order of its requests, and the end of the client's credentials.

KIP-43, KIP-152, KIP-368:

    (ApiVersions) -> SaslHandshake -> SaslAuthenticate, again until the mechanism is done -> any request

A handshake of version 0 is followed by bare tokens in frames, later ones by SaslAuthenticate. A client whose
credentials have an end gets the lifetime of its session, and renews them over the same connection with another
handshake. docs/reference/kafka.md#authentication
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Final

from broker_core.access import Asker, AuthenticationFailed, ClientCredentials, InvalidRoles, Peer, Principal
from broker_core.servers.connection import Awaited, Closing
from broker_core.servers.kafka.sasl.mechanisms import Exchange, SaslRefused, exchange_of
from broker_core.service import Admitted, Ended, LiveSession, LoginAttempt, Logins, OtherPrincipal
from broker_core.settings import KafkaMechanism
from broker_core.wire.kafka import (
    API_VERSIONS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
    ErrorCode,
    Fields,
    RequestHeader,
    response_frame,
)

__all__ = ["SaslSession"]

#: Characters of a mechanism's name in the log that a client only claims.
_SHOWN: Final = 64


class _State(Enum):
    BEGIN = auto()  # ApiVersions or SaslHandshake
    HANDSHAKE = auto()  # SaslHandshake
    TOKENS = auto()  # SaslAuthenticate
    BARE_TOKENS = auto()
    DONE = auto()


class SaslSession:
    """Authentication of one connection.

    ``mechanisms`` gives the mechanisms of the settings, in their order. ``admit`` lets the client in as a principal,
    and gives its asker. ``send`` closes the connection.

    With ``known``, the client has an identity already, by its certificate, and may prove another one first of all.
    """

    __slots__ = (
        "_admission",
        "_admit",
        "_asker",
        "_attempt",
        "_exchange",
        "_is_known",
        "_live",
        "_logins",
        "_mechanism",
        "_mechanisms",
        "_peer",
        "_principal",
        "_refusal",
        "_send",
        "_state",
    )

    def __init__(
        self,
        logins: Logins,
        mechanisms: Callable[[], tuple[KafkaMechanism, ...]],
        peer: Peer,
        *,
        admit: Callable[[Principal], Asker],
        send: Callable[[bytes | Closing], None],
        known: bool = False,
    ) -> None:
        self._logins = logins
        self._admission = logins.admission
        self._mechanisms = mechanisms
        self._peer = peer
        self._admit = admit
        self._send = send
        self._is_known = known
        self._state = _State.BEGIN
        self._attempt = LoginAttempt(peer, "")
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._refusal: str | None = None  # of a client that renews by another mechanism
        self._principal: Principal | None = None
        self._asker: Asker | None = None
        self._live: LiveSession | None = None

    @property
    def _has_end(self) -> bool:
        """Whether the client has credentials that end, so that it may renew them."""
        return self._principal is not None and self._principal.expires_at is not None

    @property
    def takes_bare_tokens(self) -> bool:
        """Whether the next message is a token without a header."""
        return self._state is _State.BARE_TOKENS

    def takes(self, key: int) -> bool:
        """Whether a request is this session's to answer, or to refuse."""
        if self._state is _State.DONE:
            return key == SASL_HANDSHAKE.key and self._has_end
        if self._state is _State.BEGIN and key == API_VERSIONS.key:
            return False
        if self._is_known and self._state is not _State.TOKENS and key != SASL_HANDSHAKE.key:
            if key != API_VERSIONS.key:
                self._state = _State.DONE  # it is content with its certificate
            return False
        return True

    def versions_sent(self) -> None:
        """Note that ApiVersions was answered: an unauthenticated client gets one such answer."""
        if self._state is _State.BEGIN:
            self._state = _State.HANDSHAKE

    def handle(
        self, api: Api, header: RequestHeader, body: Callable[[], Fields]
    ) -> bytes | Closing | Awaited:
        """The reaction to a request that the session takes; ``body`` reads it."""
        in_exchange = self._state is _State.TOKENS
        if api is SASL_HANDSHAKE and not in_exchange:
            return self._shake_hands(header, body()["mechanism"])
        if api is SASL_AUTHENTICATE and in_exchange:
            token = body()["auth_bytes"]
            return Awaited(partial(self._step, token, partial(_authenticate_frame, header)))
        return self._out_of_order(api, header)

    def bare_token(self, token: bytes) -> Awaited:
        """The reaction to a token without a header."""
        return Awaited(partial(self._step, token, _bare_frame))

    def closed(self) -> None:
        """Note the end of the connection."""
        if self._live is not None:
            self._live.cancel()
        sessions = self._admission.sessions
        if sessions is not None and self._asker is not None:
            sessions.end(self._asker)

    def _shake_hands(self, header: RequestHeader, mechanism: str) -> bytes | Awaited:
        attempt = self._attempt = LoginAttempt(self._peer, header.client_id[:256], former=self._principal)
        mechanisms = self._mechanisms()
        fields: Fields = {"mechanisms": list(mechanisms)}
        if mechanism not in mechanisms:
            fields["error_code"] = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return Awaited(partial(self._unsupported, mechanism, _frame(SASL_HANDSHAKE, header, fields)))
        if self._principal is not None and mechanism != self._mechanism:
            self._refusal = (
                f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of mechanism "
                f"'{self._mechanism}'"
            )
        else:
            self._mechanism = mechanism
            self._exchange = exchange_of(mechanism, self._logins, attempt)
        self._state = _State.BARE_TOKENS if header.api_version == 0 else _State.TOKENS
        return _frame(SASL_HANDSHAKE, header, fields)

    async def _unsupported(self, mechanism: str, last: bytes) -> Closing:
        error = AuthenticationFailed("unknown_method", f"no mechanism {mechanism[:_SHOWN]!r}")
        await self._admission.refuse(self._attempt, error)
        return Closing("authentication", None, last=last)

    async def _step(self, token: bytes, framed: Callable[[Fields], bytes]) -> bytes | Closing:
        try:
            if self._refusal is not None:
                raise SaslRefused(AuthenticationFailed("unknown_method", "another mechanism"), self._refusal)
            assert self._exchange is not None
            done = await self._exchange(token)
            if isinstance(done, bytes):
                return framed({"error_message": "", "auth_bytes": done})
            lifetime = self._accept(done.admitted)
            return framed({"error_message": "", "auth_bytes": done.token, "session_lifetime_ms": lifetime})
        except SaslRefused as refused:
            if refused.failure is not None:
                await self._admission.refuse(self._attempt, refused.failure)
            again = "re-authentication" if self._principal is not None else "authentication"
            text = refused.text or (
                f"Authentication failed during {again} due to invalid credentials with SASL mechanism {self._mechanism}"
            )
        except InvalidRoles as invalid:
            text = invalid.message
        except OtherPrincipal as other:
            text = f"Cannot change principals during re-authentication from User.{other.role}: User.{other.other}"
        error = {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": text}
        return Closing("authentication", None, last=framed(error))

    def _accept(self, admitted: Admitted) -> int:
        """Let the client in, or on: milliseconds until its credentials end, 0 for never."""
        principal, attempt = admitted.principal, self._attempt
        if self._principal is None:
            self._asker = self._admit(principal)
        self._principal = principal
        self._state = _State.DONE
        self._exchange = None
        assert self._asker is not None
        if (
            self._admission.sessions is not None and attempt.method is not None
        ):  # SCRAM has none to be passed on
            self._admission.sessions.put(self._asker, ClientCredentials(attempt.method, attempt.data))
        if self._live is not None:
            self._live.cancel()
        self._live = self._admission.live.begin(admitted, self._ended, self._is_still_valid)
        if principal.expires_at is None:
            return 0
        return max(1, int((principal.expires_at - time.time()) * 1000))

    def _is_still_valid(self) -> bool:
        """Whether the mechanism by which the client was let in is still enabled."""
        return self._mechanism in self._mechanisms()

    def _ended(self, why: Ended) -> None:
        self._send(Closing(*why))

    def _out_of_order(self, api: Api, header: RequestHeader) -> Closing:
        """Kafka's answer to a request that is out of order, if the API has an error for it; then the end.

        Clients overlook the error in Metadata, and take its answer for an empty cluster.
        """
        last = b""
        if api is not METADATA and api.response.has("error_code", header.api_version):
            last = _frame(api, header, {"error_code": ErrorCode.ILLEGAL_SASL_STATE})
        return Closing("authentication", "request before authentication", {"api": api.name}, last=last)


def _frame(api: Api, header: RequestHeader, fields: Fields) -> bytes:
    return b"".join(response_frame(api, header.api_version, header.correlation_id, fields))


def _authenticate_frame(header: RequestHeader, fields: Fields) -> bytes:
    return _frame(SASL_AUTHENTICATE, header, fields)


def _bare_frame(fields: Fields) -> bytes:
    if "error_code" in fields:
        return b""
    token: bytes = fields["auth_bytes"]
    return len(token).to_bytes(4, "big") + token
