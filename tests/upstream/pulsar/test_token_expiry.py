from __future__ import annotations

import base64
import json

import pytest

from broker_core.upstream.pulsar.token_expiry import expiry_of


def token(claims: object) -> bytes:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
    return b"eyJhbGciOiJSUzI1NiJ9." + body + b".c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("claims", "expires"),
    [
        ({"sub": "a", "exp": 1_700_000_000}, 1_700_000_000),
        ({"exp": 17.5}, 17.5),
        ({"exp": "17"}, 17),
        ({"sub": "a"}, None),
        ({"exp": None}, None),
        ({"exp": True}, None),
        ({"exp": "soon"}, None),
        ({"exp": "inf"}, None),
        ({"exp": 10**400}, None),
        (["exp"], None),
    ],
)
def test_the_claim_exp(claims: object, expires: float | None) -> None:
    assert expiry_of(token(claims)) == expires


@pytest.mark.parametrize(
    "text",
    [b"", b"opaque", b"a.b.c", b"a.b", b"..", b"\xff.\xff.\xff", b"a." + b"W" * 3000 + b".c", b"a.W1.c"],
)
def test_what_is_no_token_has_no_expiry(text: bytes) -> None:
    assert expiry_of(text) is None
