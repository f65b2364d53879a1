"""The claims of a token that the cluster verifies: nothing of them is verified here."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

__all__ = ["claims_of"]

#: Characters of a token whose claims are read.
_LARGEST: Final = 1024 * 1024


def claims_of(token: bytes) -> dict[str, Any]:
    """The claims of a JSON Web Token; none if they are no object. Raises :exc:`ValueError` for any other text."""
    parts = token.split(b".")
    if len(parts) != 3 or len(token) > _LARGEST:
        raise ValueError("it is no JSON Web Token")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        raise ValueError("its claims cannot be read") from None
    return claims if isinstance(claims, dict) else {}
