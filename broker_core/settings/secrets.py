"""What must not be shown: passwords, tokens and keys of plugins, and user names with passwords in URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["MASK", "masked", "without_credentials"]

MASK: Final = "********"

#: A name one of whose words is one of these holds a secret, whatever its value looks like.
_SECRET_NAME: Final = re.compile(
    r"(?:^|[^a-z])(?:pass|passwd|password|passphrase|pwd|secret|secrets|token|tokens|dsn|credential|credentials|"
    r"key|apikey|private|auth|jwt|cookie)(?:[^a-z]|$)",
    re.IGNORECASE,
)
#: Names with such a word that hold no secret: places of secrets, and settings of this package.
_HARMLESS_NAME: Final = re.compile(
    r"property_keys$|(?:_|-)(?:file|path|claim|name|id|ttl|timeout|size|algorithm)$"
)
#: After a scheme, or at the begin of what an error quotes.
_USER_INFO: Final = re.compile(r"(?:(?<=://)|(?<='))[^/@\s']+@")
_PASSWORD_PAIR: Final = re.compile(r"(?i)\b(password|passwd|secret|token|sslpassword)=('[^']*'|[^\s&;,]+)")


def masked(path: tuple[str, ...], value: Any) -> Any:
    """``value`` as it may be shown: the whole of a secret is :data:`MASK`, of a URL only its user name and password."""
    if isinstance(value, Mapping):
        return {key: masked((*path, str(key)), inner) for key, inner in value.items()}
    if _is_secret(path) and value not in (None, "", False, True):
        return MASK
    if isinstance(value, list | tuple):
        return [masked(path, inner) for inner in value]
    if isinstance(value, str):
        return without_credentials(value)
    return value


def without_credentials(text: str) -> str:
    """Text without the user names and passwords of URLs and of ``password=...`` pairs in it."""
    return _PASSWORD_PAIR.sub(rf"\1={MASK}", _USER_INFO.sub(f"{MASK}@", text))


def _is_secret(path: tuple[str, ...]) -> bool:
    """Only plugins have secrets of their own yet; a plugin's own name (``token-filter``) is none."""
    if path[0] != "plugins":
        return False
    return any(
        _SECRET_NAME.search(_words(part)) and not _HARMLESS_NAME.search(_words(part)) for part in path[2:]
    )


def _words(name: str) -> str:
    """``apiKey`` and ``API-KEY`` as ``api_key``, so that words are found."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
