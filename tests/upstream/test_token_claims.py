from __future__ import annotations

import base64

import pytest

from broker_core.upstream.token_claims import claims_of


def _token(claims: bytes) -> bytes:
    return b"e30." + base64.urlsafe_b64encode(claims).rstrip(b"=") + b"."


def test_claims_are_read_without_a_verification() -> None:
    assert claims_of(_token(b'{"sub":"alice","exp":5}')) == {"sub": "alice", "exp": 5}
    assert claims_of(_token(b'["sub"]')) == {}


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (b"secret", "it is no JSON Web Token"),
        (b"a.b.c.d", "it is no JSON Web Token"),
        (_token(b'"%s"' % (b"x" * 1024 * 1024)), "it is no JSON Web Token"),
        (_token(b"no json"), "its claims cannot be read"),
        (_token(b"[" * 100_000), "its claims cannot be read"),
        (b"e30.\xff.", "its claims cannot be read"),
    ],
)
def test_other_texts_are_refused(token: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        claims_of(token)
