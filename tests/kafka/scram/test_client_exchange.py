from __future__ import annotations

import pytest

from broker_core.kafka.scram.client_exchange import ScramClientExchange
from broker_core.kafka.scram.messages import ScramError

# RFC 7677
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def vector() -> ScramClientExchange:
    return ScramClientExchange("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)


def test_the_example_of_rfc_7677() -> None:
    client = vector()
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert client.final(SERVER_FIRST) == CLIENT_FINAL
    client.finish(SERVER_FINAL)


@pytest.mark.parametrize(
    "first",
    [
        SERVER_FIRST.replace(b"i=4096", b"i=4095"),
        SERVER_FIRST.replace(b"i=4096", b"i=999999999"),
        SERVER_FIRST.replace(b"r=r", b"r=R"),
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"",
    ],
)
def test_a_server_that_begins_wrongly_is_refused(first: bytes) -> None:
    with pytest.raises(ScramError):
        vector().final(first)


@pytest.mark.parametrize("final", [b"v=AAAA", b"v=?", b"v=\xff", b"e=invalid-proof", b""])
def test_a_server_that_does_not_know_the_credential_is_refused(final: bytes) -> None:
    client = vector()
    client.final(SERVER_FIRST)
    with pytest.raises(ScramError):
        client.finish(final)


def test_an_answer_before_the_question_is_refused() -> None:
    with pytest.raises(ScramError):
        vector().finish(SERVER_FINAL)


def test_another_mechanism_is_refused() -> None:
    with pytest.raises(ValueError, match="no mechanism"):
        ScramClientExchange("SCRAM-SHA-1", "user", "pencil")


def test_a_password_is_not_shown() -> None:
    assert "pencil" not in repr(vector())
