"""The credentials of an HTTP request: a method of authentication, and its data."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection
from typing import Final

from aiohttp import hdrs, web

__all__ = ["challenges", "read_credentials"]

#: The methods of the two schemes that every HTTP client knows, as Pulsar's clients name them.
_METHODS: Final = {"bearer": "token", "basic": "basic"}


def read_credentials(request: web.Request, common_name: str | None) -> tuple[str | None, bytes]:
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


def challenges(methods: Collection[str]) -> list[str]:
    """The values of ``WWW-Authenticate`` for these methods of authentication: at least one scheme, as in any 401."""
    found = ['Basic realm="broker-core", charset="UTF-8"'] if "basic" in methods else []
    if "token" in methods or not found:
        found.insert(0, 'Bearer realm="broker-core"')
    return found
