from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.kafka.scram.messages import (
    ClientFinal,
    ClientFirst,
    ScramError,
    ServerFirst,
    new_nonce,
    saslname,
)


@pytest.mark.parametrize(
    ("message", "name", "authzid", "nonce"),
    [
        (b"n,,n=user,r=abc", "user", "", "abc"),
        (b"y,a=other,n=user,r=abc,t=true", "user", "other", "abc"),
        (b"n,,n=a=2Cb=3Dc,r=x", "a,b=c", "", "x"),
        ("n,,n=café,r=x".encode(), "café", "", "x"),
    ],
)
def test_the_first_message_of_a_client(message: bytes, name: str, authzid: str, nonce: str) -> None:
    first = ClientFirst.parse(message)
    assert (first.name, first.authzid, first.nonce) == (name, authzid, nonce)
    assert first.gs2 + first.bare == message.decode()


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,m=x,n=user,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a\x00b",
        b"n,,n=us=er,r=abc",
        b"n,,n=\xff,r=abc",
        b"n,,n=user,r=abc\n",
        b"n=user,r=abc",
    ],
)
def test_what_is_no_first_message(message: bytes) -> None:
    with pytest.raises(ScramError):
        ClientFirst.parse(message)


@pytest.mark.parametrize("message", [b"", b"r=abc,s=AA==", b"r=abc,s=?,i=4096", b"r=abc,s=AA==,i=-1"])
def test_what_is_no_first_message_of_a_server(message: bytes) -> None:
    with pytest.raises(ScramError):
        ServerFirst.parse(message)


@pytest.mark.parametrize("message", [b"", b"c=biws,r=abc", b"c=biws,r=abc,p=?", b"r=abc,c=biws,p=AA=="])
def test_what_is_no_final_message(message: bytes) -> None:
    with pytest.raises(ScramError):
        ClientFinal.parse(message)


@given(st.text())
def test_every_name_comes_back(name: str) -> None:
    try:
        message = f"n,,n={saslname(name)},r=abc".encode()
    except UnicodeEncodeError:
        return
    assert ClientFirst.parse(message).name == name


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    for parse in (ClientFirst.parse, ServerFirst.parse, ClientFinal.parse):
        with contextlib.suppress(ScramError):
            parse(data)


def test_a_proof_is_not_shown() -> None:
    assert "proof" not in repr(ClientFinal.parse(b"c=biws,r=abc,p=AA=="))


def test_nonces_differ() -> None:
    assert len({new_nonce() for _ in range(100)}) == 100
