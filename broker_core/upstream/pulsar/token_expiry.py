"""The expiry of a token by its own claim, which is not verified here, for the brokers do that."""

from __future__ import annotations

import math

from broker_core.upstream.token_claims import claims_of

__all__ = ["expiry_of"]


def expiry_of(token: bytes) -> float | None:
    """Unix seconds of the claim ``exp``; ``None`` for a token without it, and for one that is no JSON Web Token."""
    try:
        expires = claims_of(token).get("exp")
        if isinstance(expires, bool) or not isinstance(expires, int | float | str):
            return None
        seconds = float(expires)
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) else None
