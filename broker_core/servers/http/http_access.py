"""Rights to pages of HTTP: the credentials of a request, and the rules about the page.

If clients are authenticated, ``/questions`` and ``/plugins`` are never open. ``/metrics`` and health are, unless
``[http] protect`` is on.
"""

from __future__ import annotations

import base64
import binascii
import enum
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

from aiohttp import hdrs, web

from broker_core.access import (
    ACTIONS,
    FAILED,
    Asker,
    AuthenticationFailed,
    ClientCredentials,
    InvalidRoles,
)
from broker_core.errors import BrokerCoreError, ListingFailed
from broker_core.pipeline import Pipeline
from broker_core.servers.http.served_connection import asker_of, peer_of
from broker_core.service import Admission, LoginAttempt

__all__ = ["CREDENTIALS_END", "PROVEN", "HttpAccess", "ProtectedFromAll", "Right"]

#: The methods of the two schemes that every HTTP client knows, as Pulsar's clients name them.
_METHODS: Final = {"bearer": "token", "basic": "basic"}
#: The end of the credentials of a request, in seconds since 1970, as far as it is known.
CREDENTIALS_END: Final = web.RequestKey("credentials end", float)
#: Whether a request brought credentials that were verified.
PROVEN: Final = web.RequestKey("proven", bool)
#: The principal that a proxy asks for, as Pulsar's proxies name it to the brokers' web service.
_ORIGINAL_PRINCIPAL: Final = "X-Original-Principal"


class ProtectedFromAll(BrokerCoreError):
    """Refused settings: ``[http] protect`` without authentication, so that no scrape and no probe would be answered."""


class Right(enum.Enum):
    """The right that a page or an operation needs, if clients are authenticated or there are rules or gates.

    Rights to all namespaces are for the rules alone: they are of the whole server, and gates are about namespaces. The
    values of the last ones are actions of gates (:data:`~broker_core.access.asker.ACTIONS`): rules and gates are asked
    before the handler, about the namespace of the path.
    """

    NOTHING = "nothing, or credentials with [http] protect"
    MONITOR_IF_PROTECTED = "nothing, or monitor in all namespaces with [http] protect"
    #: The handler asks for more itself, as :meth:`~broker_core.pipeline.Pipeline.answer` does.
    CREDENTIALS = "credentials"
    MONITOR_SOMEWHERE = "monitor in some namespace: the page shows no other"
    MONITOR_EVERYWHERE = "monitor in all namespaces"
    ADMIN_EVERYWHERE = "admin in all namespaces"
    #: Needs nothing if clients are not authenticated: these operations then have nothing to show.
    SUPER = "a super role"
    LIST = "list"
    ADMIN = "admin"

    @property
    def action(self) -> str | None:
        """The action for rules and gates."""
        return self.value if self.value in ACTIONS else None


#: The rights to pages that are open unless ``[http] protect`` is on.
_IF_PROTECTED: Final = frozenset({Right.MONITOR_IF_PROTECTED, Right.NOTHING})
#: The actions of the rules that a client needs before more is known of what it wants.
_OF_RULES: Final[Mapping[Right, str]] = {
    Right.MONITOR_IF_PROTECTED: "monitor",
    Right.MONITOR_SOMEWHERE: "monitor",
    Right.MONITOR_EVERYWHERE: "monitor",
    Right.ADMIN_EVERYWHERE: "admin",
    Right.SUPER: "admin",
}


class HttpAccess:
    """The access to the pages of one server.

    ``pipeline`` has the rules in force. ``identify`` changes the identity of a client. Raises
    :exc:`ProtectedFromAll`.
    """

    def __init__(
        self,
        admission: Admission,
        pipeline: Pipeline,
        *,
        protect: bool = False,
        identify: Callable[[Asker], Asker] | None = None,
    ) -> None:
        if protect and not admission.authenticator.enabled:
            raise ProtectedFromAll(
                "http.protect needs authentication, or no client could ask: set authentication.methods"
            )
        self._admission = admission
        self._pipeline = pipeline
        self._identify = identify
        self._protect = protect

    async def admit(self, request: web.Request, needs: Right) -> Asker:
        """The asker of a page that needs this.

        Raises :exc:`aiohttp.web.HTTPUnauthorized` and :exc:`aiohttp.web.HTTPForbidden`, and
        :exc:`~broker_core.errors.ListingFailed` with the cause ``DENIED``.
        """
        asker = asker_of(request)
        if needs in _IF_PROTECTED and not self._protect:
            return asker
        if self._admission.authenticator.enabled:
            try:
                asker = await self._authenticated(request, asker)
            except AuthenticationFailed as error:
                raise self._unauthenticated(error) from None
            except InvalidRoles as error:
                raise web.HTTPForbidden(reason=error.message) from None
        if self._identify is not None:
            asker = self._identify(asker)
        action, rules = _OF_RULES.get(needs), self._pipeline.authorization
        if action is None:
            return asker
        try:
            if needs is Right.MONITOR_SOMEWHERE:
                rules.check_somewhere(asker, action)
            elif needs is not Right.SUPER:
                rules.check_action(asker, action, None)
            elif self._admission.authenticator.enabled:
                rules.check_super(asker)
        except ListingFailed:
            self._pipeline.metrics.denied(action, "rules")
            raise
        return asker

    async def _authenticated(self, request: web.Request, asker: Asker) -> Asker:
        """The asker with its roles; raises :exc:`AuthenticationFailed` and :exc:`InvalidRoles`."""
        admission, peer = self._admission, peer_of(request)
        name = peer.common_name if "tls" in admission.authenticator.methods else None
        method, data = _credentials(request, name)
        attempt = LoginAttempt(
            peer,
            asker.client_version,
            method,
            data,
            original_principal=request.headers.get(_ORIGINAL_PRINCIPAL),
        )
        admitted = admission.now(attempt) or await admission.later(attempt)
        if admitted.principal.expires_at is not None:
            request[CREDENTIALS_END] = admitted.principal.expires_at
        request[PROVEN] = method is not None and admitted.principal is not admission.authenticator.anonymous
        asker = replace(asker, role=admitted.role, original_principal=admitted.original_principal)
        if admission.sessions is not None and method is not None:
            # The next request of a connection may be another client's, behind a proxy: nothing of the last one stays.
            admission.sessions.end(asker)
            admission.sessions.put(asker, ClientCredentials(method, data))
        return asker

    def _unauthenticated(self, error: AuthenticationFailed) -> web.HTTPUnauthorized:
        # Many clients send credentials only after a 401.
        asks = error.reason == "no_credentials"
        said = "credentials are needed here" if asks else FAILED
        headers = [
            (hdrs.WWW_AUTHENTICATE, text) for text in _challenges(self._admission.authenticator.methods)
        ]
        return web.HTTPUnauthorized(reason=said, headers=headers)


def _credentials(request: web.Request, common_name: str | None) -> tuple[str | None, bytes]:
    """Method and data of a request; no method if it has no credentials.

    A scheme that is not ``Bearer`` or ``Basic`` is a method of that name, for plugins. ``common_name`` is of a verified
    client certificate, which counts if there is no header.
    """
    header = request.headers.get(hdrs.AUTHORIZATION)
    if header is None:
        return (None, b"") if common_name is None else ("tls", b"")
    scheme, _, rest = header.partition(" ")
    data = rest.strip().encode("utf-8", "surrogateescape")
    method = _METHODS.get(scheme.lower(), scheme.lower())
    if method == "basic":
        try:
            data = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            data = b""
    return method, data


def _challenges(methods: Collection[str]) -> list[str]:
    """The values of ``WWW-Authenticate`` for these methods of authentication: at least one scheme, as in any 401."""
    found = ['Basic realm="broker-core", charset="UTF-8"'] if "basic" in methods else []
    if "token" in methods or not found:
        found.insert(0, 'Bearer realm="broker-core"')
    return found
