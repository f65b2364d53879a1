"""The handshake of one client: authentication from CONNECT to CONNECTED, the frame limit that CONNECTED announces, and
new credentials when the old ones have ended.

docs/reference/pulsar-behaviour.md#authentication
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from typing import Final

from broker_core.access import (
    FAILED,
    Asker,
    AuthenticationFailed,
    ClientCredentials,
    InvalidRoles,
    Peer,
    Principal,
)
from broker_core.errors import ServerError
from broker_core.servers.connection import Awaited, Closing, FrameSender
from broker_core.service import Admission, Admitted, Ended, LiveSession, LoginAttempt, OtherPrincipal
from broker_core.settings import PulsarSettings
from broker_core.wire.pulsar import BaseCommand, CommandConnect, commands

__all__ = ["Handshake", "announced_message_size"]

#: Seconds for a client to answer an AUTH_CHALLENGE: it may have to ask for its new token first.
_ANSWER: Final = 30.0
#: Versions of clients that take the limit of CONNECTED for answers only, not for their producers.
_FOLLOWS_FRAME: Final = re.compile(r"Pulsar-Go-|Pulsar-Java-v(?:[4-9]|[1-9]\d+)\.")
_FAILED: Final = commands.error(commands.CONNECTION_REQUEST_ID, ServerError.AuthenticationError, FAILED)
_REFUSED: Final = (AuthenticationFailed, InvalidRoles, OtherPrincipal)


class Handshake:
    """The state of one client's authentication.

    ``admit`` lets the client in, with its role and original principal: it gives the asker and the frame of CONNECTED.
    ``sender`` sends a challenge, or closes the connection.
    """

    __slots__ = (
        "_admission",
        "_admit",
        "_asker",
        "_client",
        "_has_refresh",
        "_is_checking",
        "_live",
        "_method",
        "_original",
        "_peer",
        "_principal",
        "_proxy_version",
        "_sender",
        "_server_version",
        "_timer",
        "has_begun",
    )

    def __init__(
        self,
        admission: Admission,
        peer: Peer,
        server_version: str,
        *,
        admit: Callable[[CommandConnect, str, str | None], tuple[Asker, bytes]],
        sender: FrameSender,
    ) -> None:
        self._admission = admission
        self._peer = peer
        self._server_version = server_version
        self._admit = admit
        self._sender = sender
        self._client = ""
        self.has_begun = False  # CONNECT is here
        self._has_refresh = False
        self._method = "none"
        self._original: tuple[str | None, str | None] = (None, None)  # of a proxy's client: method, data
        self._asker: Asker | None = None  # once it is let in
        self._principal: Principal
        self._proxy_version: str | None = None
        self._live: LiveSession | None = None
        self._timer: asyncio.TimerHandle | None = None  # of an AUTH_CHALLENGE that has no good answer yet
        self._is_checking = False  # the answer

    def begin(self, connect: CommandConnect) -> bytes | Closing | Awaited | None:
        """The reaction to CONNECT."""
        self.has_begun = True
        self._client = connect.client_version[:256]
        method = commands.auth_method_of(connect)
        self._method = method or "none"
        self._has_refresh = connect.feature_flags.supports_auth_refresh
        self._proxy_version = connect.proxy_version if connect.HasField("proxy_version") else None
        attempt = LoginAttempt(
            self._peer,
            self._client,
            method,
            connect.auth_data,
            original_principal=connect.original_principal if connect.HasField("original_principal") else None,
            proxy_version=self._proxy_version,
        )
        return self._checked(attempt, partial(self._let_in, connect))

    def renew(self, command: BaseCommand) -> bytes | Closing | Awaited | None:
        """The reaction to AUTH_RESPONSE. An unrequested one is ignored."""
        if self._timer is None or self._is_checking:
            return None
        self._is_checking = True
        # As at the broker, the method is that of CONNECT, whatever the answer names.
        data = command.authResponse.response.auth_data
        assert self._asker is not None  # only connected clients are asked for new credentials
        attempt = LoginAttempt(
            self._peer,
            self._client,
            self._method,
            data,
            original_principal=self._asker.original_principal,
            proxy_version=self._proxy_version,
            former=self._principal,
        )
        return self._checked(attempt, partial(self._renewed, data), holds=False)

    def closed(self) -> None:
        """Note the end of the connection."""
        self._stop_waiting()
        if self._live is not None:
            self._live.cancel()
        if self._admission.sessions is not None and self._asker is not None:
            self._admission.sessions.end(self._asker)

    def _checked(
        self, attempt: LoginAttempt, let_in: Callable[[Admitted], bytes | None], *, holds: bool = True
    ) -> bytes | Closing | Awaited | None:
        try:
            admitted = self._admission.now(attempt)
        except _REFUSED as error:
            return _refusal(error)
        return (
            Awaited(partial(self._checked_later, attempt, let_in), holds)
            if admitted is None
            else let_in(admitted)
        )

    async def _checked_later(
        self, attempt: LoginAttempt, let_in: Callable[[Admitted], bytes | None]
    ) -> bytes | Closing | None:
        try:
            return let_in(await self._admission.later(attempt))
        except _REFUSED as error:
            return _refusal(error)

    def _let_in(self, connect: CommandConnect, admitted: Admitted) -> bytes:
        self._asker, frame = self._admit(connect, admitted.role, admitted.original_principal)
        if self._admission.sessions is not None:
            self._original = (
                connect.original_auth_method if connect.HasField("original_auth_method") else None,
                connect.original_auth_data if connect.HasField("original_auth_data") else None,
            )
        self._keep(self._asker, connect.auth_data, admitted)
        return frame

    def _renewed(self, data: bytes, admitted: Admitted) -> None:
        assert self._asker is not None
        self._stop_waiting()
        self._keep(self._asker, data, admitted)

    def _keep(self, asker: Asker, data: bytes, admitted: Admitted) -> None:
        self._principal = admitted.principal
        if self._admission.sessions is not None:
            self._admission.sessions.put(asker, ClientCredentials(self._method, data, *self._original))
        self._live = self._admission.live.begin(admitted, self._ended)

    def _ended(self, why: Ended) -> None:
        """Ask for new credentials, since these have ended or are good no more; close a client that cannot send any."""
        assert self._asker is not None
        if not self._has_refresh:
            self._sender.send(Closing(*why))
            return
        self._timer = asyncio.get_running_loop().call_later(_ANSWER, self._unanswered, why)
        self._is_checking = False
        self._sender.send(
            commands.auth_challenge(
                self._server_version,
                self._method,
                commands.REFRESH,
                protocol_version=self._asker.protocol_version,
            )
        )

    def _unanswered(self, why: Ended) -> None:
        self._sender.send(
            Closing(why.reason, f"{why.event}, and it did not renew them", {"seconds": _ANSWER})
        )

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def announced_message_size(client_version: str, settings: PulsarSettings) -> int:
    """The ``max_message_size`` of CONNECTED for a client of this version.

    Go and Java from 4 on take it as the limit of answers. C++ and Python have no such limit, and give the value to all
    producers of the process; older clients of Java to the connection's producers (apache/pulsar#22306).
    """
    size = settings.max_message_size
    if settings.advertise_frame == "auto" and _FOLLOWS_FRAME.match(client_version):
        return max(size, settings.max_listing)
    return size


def _refusal(error: Exception) -> Closing:
    """The end of a client that is not let in. One that has become another principal is closed without an answer."""
    last = b""
    if isinstance(error, AuthenticationFailed):
        last = _FAILED
    elif isinstance(error, InvalidRoles):
        last = commands.error(commands.CONNECTION_REQUEST_ID, ServerError.AuthorizationError, error.message)
    return Closing("authentication", None, last=last)
