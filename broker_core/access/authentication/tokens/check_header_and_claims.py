"""The claims and headers of a token: which ones Pulsar's brokers accept, the role, and the end.

docs/reference/pulsar-behaviour.md#tokens
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from broker_core.access.authentication.failures import AuthenticationFailed
from broker_core.access.principal import Principal
from broker_core.settings import TokenSettings

__all__ = ["check_header", "principal_of"]

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_ISO_8601: Final = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?Z", re.ASCII)
#: The most seconds from or to 1970 that a date in milliseconds has room for.
_FARTHEST: Final = 2**63 // 1000
#: Headers of which the broker cannot read the claims: nested and compressed ones, and extensions that must be known.
_UNREADABLE: Final = ("cty", "zip", "calg", "crit")
_SUBJECT: Final = "sub"


def check_header(header: Mapping[str, Any]) -> tuple[str, str | None]:
    """The algorithm and the id of the key (or ``None``) of a token; raises :exc:`AuthenticationFailed`."""
    for name in _UNREADABLE:
        if not _is_absent(header.get(name)):
            raise _bad(f"it has the header {name!r}")
    _text(header, "typ")
    algorithm = _text(header, "alg")
    if algorithm is None:
        raise _bad("it names no algorithm")
    return algorithm, _text(header, "kid")


def principal_of(claims: Mapping[str, Any], settings: TokenSettings, now: float) -> Principal:
    """The principal that a verified token is for, at ``now`` in Unix time; raises :exc:`AuthenticationFailed`."""
    subject = _text(claims, _SUBJECT)
    issuer = _text(claims, "iss")
    _text(claims, "jti")
    _date(claims, "iat")  # it may be ahead
    audiences = _audiences(claims)
    end, begin = _date(claims, "exp"), _date(claims, "nbf")
    if end is not None and now - settings.leeway > end:
        raise AuthenticationFailed("expired", f"exp was {now - end:.0f} s ago")
    if begin is not None and now + settings.leeway < begin:
        raise AuthenticationFailed("not_yet_valid", f"nbf is {begin - now:.0f} s ahead")
    if settings.audience and settings.audience not in audiences:
        raise AuthenticationFailed("audience", "aud has not the configured audience")
    if settings.issuer and issuer != settings.issuer:
        raise AuthenticationFailed("issuer", "iss is not the configured issuer")
    role = subject if settings.subject_claim == _SUBJECT else _role(claims, settings.subject_claim)
    if role is None:
        raise AuthenticationFailed("no_subject", f"the claim {settings.subject_claim!r} is absent or empty")
    try:
        return Principal(role, None if end is None else end + settings.leeway)
    except ValueError as error:
        raise AuthenticationFailed("bad_role", str(error)) from None


def _is_absent(value: object) -> bool:
    """Whether a value counts as absent: ``null``, text of white space alone, an empty list or object."""
    return value is None or (isinstance(value, str) and not value.strip()) or value in ([], {})


def _text(values: Mapping[str, Any], name: str) -> str | None:
    return _as_text(values.get(name), f"{name!r} is no text")


def _as_text(value: object, problem: str) -> str | None:
    if _is_absent(value):
        return None
    if not isinstance(value, str):
        raise _bad(problem)
    return value


def _audiences(claims: Mapping[str, Any]) -> tuple[str, ...]:
    value = claims.get("aud")
    if _is_absent(value):
        return ()
    audiences = tuple(value) if isinstance(value, list) else (value,)
    if not all(isinstance(audience, str) for audience in audiences):
        raise _bad("'aud' is no text, and no list of texts")
    return audiences


def _role(claims: Mapping[str, Any], name: str) -> str | None:
    """The role in another claim than ``sub``: text, or the first element of a list as text."""
    value = claims.get(name)
    if isinstance(value, list) and value:
        value = value[0]
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, int | float):
            value = str(value)
    return _as_text(value, "the claim of the role is no text, and no list that begins with one")


def _date(claims: Mapping[str, Any], name: str) -> float | None:
    """Unix time of a claim: whole seconds of a number or of digits, or ISO 8601 in UTC."""
    value = claims.get(name)
    if _is_absent(value):
        return None
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            return _iso_8601(value, name)
        value = int(value)
    # Not as a float: an integer of a token has any number of digits. NaN is within no bounds.
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_FARTHEST <= value <= _FARTHEST:
        raise _bad(f"{name!r} is no date")
    return float(int(value))


def _iso_8601(text: str, name: str) -> float:
    found = _ISO_8601.fullmatch(text)
    if found is None:
        raise _bad(f"{name!r} is no date")
    try:
        seconds = datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise _bad(f"{name!r} is no date") from None
    return seconds + float(f"0.{found[2] or 0}")


def _bad(detail: str) -> AuthenticationFailed:
    return AuthenticationFailed("bad_token", detail)
