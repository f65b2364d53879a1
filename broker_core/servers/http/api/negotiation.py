"""The preferred form of an answer: ``Accept`` and ``Accept-Encoding`` with their q-values (RFC 9110, 12.5)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from aiohttp import hdrs, web

from broker_core.servers.http.api.problem_details import refused

__all__ = ["VARY", "chosen_type", "takes_gzip"]

#: The headers that the answers of one URL depend on.
VARY: Final = "Accept, Accept-Encoding, Authorization"
_QUALITY: Final = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")


def chosen_type(request: web.Request, offered: Sequence[str]) -> str:
    """The media type that a client prefers among the offered ones; of equal ones the first.

    A type that the client names counts before one that only its ``*`` allows. Raises the error 406 if it takes none.
    """
    accepted = list(_accepted(request, hdrs.ACCEPT))
    if not accepted:
        return offered[0]
    best: tuple[float, int] = (0.0, 0)
    chosen: str | None = None
    for media_type in offered:
        quality, specific = _quality(media_type, accepted)
        if quality > 0 and (quality, specific) > best:
            best, chosen = (quality, specific), media_type
    if chosen is None:
        raise refused(406, f"there is an answer as {', '.join(offered)}")
    return chosen


def _quality(media_type: str, accepted: Sequence[tuple[str, float]]) -> tuple[float, int]:
    """The q-value of the most specific range that has a type, and how specific it is."""
    ranges = {"*/*": 0, f"{media_type.partition('/')[0]}/*": 1, media_type: 2}
    found = [(ranges[name], quality) for name, quality in accepted if name in ranges]
    if not found:
        return 0.0, 0
    specific, quality = max(found)
    return quality, specific


def takes_gzip(request: web.Request) -> bool:
    """Whether a client prefers an answer in gzip to one as it is, or likes both."""
    accepted = dict(_accepted(request, hdrs.ACCEPT_ENCODING))
    others = accepted.get("*", 0.0)
    gzip = max(accepted.get("gzip", others), accepted.get("x-gzip", 0.0))
    return gzip > 0 and gzip >= accepted.get("identity", 0.0)


def _accepted(request: web.Request, header: str) -> Iterator[tuple[str, float]]:
    """The values in a header, in lower case without parameters, each with its q-value; malformed ones are left out."""
    for element in ",".join(request.headers.getall(header, ())).split(","):
        name, *parameters = (part.strip() for part in element.lower().split(";"))
        if not name:
            continue
        quality = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                quality = float(value) if _QUALITY.fullmatch(value.strip()) else 0.0
        yield name, quality
