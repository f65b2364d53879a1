"""Rights to pages of HTTP: the credentials of a request, and the rules about the page.

If clients are authenticated, ``/questions`` and ``/plugins`` are never open. ``/metrics`` and health are, unless
``[http] protect`` is on.
"""

from __future__ import annotations

import base64
import binascii
import enum
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from aiohttp import hdrs, web

from broker_core.access import (
    FAILED,
    Asker,
    AuthenticationFailed,
    Authorization,
    ClientCredentials,
    InvalidRoles,
)
from broker_core.errors import BrokerCoreError, ListingFailed
from broker_core.servers.http.http_asker import asker_of
from broker_core.servers.http.served_connection import peer_of
from broker_core.service import Admission, LoginAttempt

__all__ = ["CREDENTIALS_END", "PROVEN", "HttpAccess", "Needs", "ProtectedFromAll"]

#: The methods of the two schemes that every HTTP client knows, as Pulsar's clients name them.
_METHODS: Final = {"bearer": "token", "basic": "basic"}
#: When the credentials of a request end, in seconds since 1970, as far as that is known.
CREDENTIALS_END: Final = web.RequestKey("credentials end", float)
#: Whether a request brought credentials that were verified.
PROVEN: Final = web.RequestKey("proven", bool)
#: The principal that a proxy asks for, as Pulsar's proxies name it to the brokers' web service.
_ORIGINAL_PRINCIPAL: Final = "X-Original-Principal"


class ProtectedFromAll(BrokerCoreError):
    """``[http] protect`` is on, but nobody is authenticated: no scrape and no probe would have an answer."""


class Needs(enum.Enum):
    """The right that a page needs, if clients are authenticated or there are rules."""

    MONITOR_EVERYWHERE = "monitor in all namespaces"
    ADMIN_EVERYWHERE = "admin in all namespaces"
    SUPER = "a super role; nothing where clients are not authenticated, as nothing is there"
    MONITOR_SOMEWHERE = "monitor in some namespace: the page shows no other"
    MONITOR_IF_PROTECTED = "monitor in all namespaces, with [http] protect"
    CREDENTIALS_IF_PROTECTED = "the credentials of anybody, with [http] protect"
    CREDENTIALS = "the credentials of anybody: more is asked where it is known what the client wants"


#: The needs of pages that are open unless ``[http] protect`` is on.
_IF_PROTECTED: Final = frozenset({Needs.MONITOR_IF_PROTECTED, Needs.CREDENTIALS_IF_PROTECTED})
#: The needs of pages that need credentials, but no right.
_CREDENTIALS: Final = frozenset({Needs.CREDENTIALS_IF_PROTECTED, Needs.CREDENTIALS})


class HttpAccess:
    """The access to the pages of one server.

    ``authorization`` gives the rules in force. ``denied`` is called with the action when the rules deny a page.
    ``identify`` changes the identity of a client. Raises :exc:`ProtectedFromAll`.
    """

    def __init__(
        self,
        admission: Admission,
        authorization: Callable[[], Authorization],
        *,
        protect: bool = False,
        identify: Callable[[Asker], Asker] | None = None,
        denied: Callable[[str], object] = lambda _action: None,
    ) -> None:
        if protect and not admission.authenticator.enabled:
            raise ProtectedFromAll(
                "http.protect needs authentication, or no client could ask: set authentication.methods"
            )
        self._admission = admission
        self._authorization = authorization
        self._identify = identify
        self._protect = protect
        self._denied = denied

    async def admit(self, request: web.Request, needs: Needs) -> Asker:
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
        try:
            if needs is Needs.MONITOR_SOMEWHERE:
                self._authorization().check_somewhere(asker, "monitor")
            elif needs is Needs.SUPER:
                if self._admission.authenticator.enabled:
                    self._authorization().check_super(asker)
            elif needs not in _CREDENTIALS:
                self._authorization().check_action(asker, _action(needs), None)
        except ListingFailed:
            self._denied(_action(needs))
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


def _action(needs: Needs) -> str:
    """The action of the rules that a page needs."""
    return "admin" if needs in (Needs.ADMIN_EVERYWHERE, Needs.SUPER) else "monitor"


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
