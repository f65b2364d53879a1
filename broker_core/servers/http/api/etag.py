"""Weak entity tags of listings, and those that a client has: ``ETag`` and ``If-None-Match`` (RFC 9110, 8.8 and 13)."""

from __future__ import annotations

import re
from typing import Final

from aiohttp import hdrs, web

__all__ = ["etag", "held_etags", "holds"]

_TAG: Final = re.compile(r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
#: More are not looked at: a client has one of a URL.
_MOST: Final = 32


def etag(opaque: str) -> str:
    """The header ``ETag`` for a listing: weak, since its forms (JSON, text, gzip ...) differ in bytes."""
    return f'W/"{opaque}"'


def held_etags(request: web.Request) -> tuple[str, ...]:
    """The opaque parts of the tags in ``If-None-Match``; ``*`` is no tag, and is left out: nothing is known of it."""
    header = ",".join(request.headers.getall(hdrs.IF_NONE_MATCH, ()))
    return tuple(found[1] for _, found in zip(range(_MOST), _TAG.finditer(header), strict=False))


def holds(request: web.Request, opaque: str) -> bool:
    """Whether the client has this already, so that 304 is the answer."""
    return opaque in held_etags(request)
