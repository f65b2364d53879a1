"""The expiry of a token by its own claim, which is not verified here, for the brokers do that."""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import Final

__all__ = ["expiry_of"]

_LARGEST: Final = 1024 * 1024  # characters; of a larger token the expiry is unknown


def expiry_of(token: bytes) -> float | None:
    """Unix seconds of the claim ``exp``; ``None`` for a token without it, and for one that is no JSON Web Token."""
    parts = token.split(b".")
    if len(parts) != 3 or len(token) > _LARGEST:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
        expires = claims.get("exp") if isinstance(claims, dict) else None
        if isinstance(expires, bool) or not isinstance(expires, int | float | str):
            return None
        seconds = float(expires)
    except (binascii.Error, ValueError, OverflowError, RecursionError):
        return None
    return seconds if math.isfinite(seconds) else None
