from __future__ import annotations

import base64

import pytest

from broker_core.kafka.scram.client_exchange import ScramClientExchange
from broker_core.kafka.scram.credentials import HASHES, decoy_of, derive_credential
from broker_core.kafka.scram.exchange import ScramExchange
from broker_core.kafka.scram.messages import ClientFirst, ScramError

# RFC 7677
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def vector() -> ScramExchange:
    credential = derive_credential("SCRAM-SHA-256", b"pencil", salt=SALT, iterations=4096)
    return ScramExchange(ClientFirst.parse(CLIENT_FIRST), credential, nonce=SERVER_NONCE)


def test_the_example_of_rfc_7677() -> None:
    server = vector()
    assert server.first() == SERVER_FIRST
    assert server.final(CLIENT_FINAL) == SERVER_FINAL


@pytest.mark.parametrize(
    "final",
    [
        CLIENT_FINAL.replace(b"p=d", b"p=e"),
        CLIENT_FINAL.replace(b"c=biws", b"c=eSws"),
        CLIENT_FINAL.replace(b"r=r", b"r=R"),
        CLIENT_FINAL[:-8] + b"",
        b"c=biws,r=x,p=AAAA",
        b"\x01",
    ],
)
def test_another_final_message_proves_nothing(final: bytes) -> None:
    with pytest.raises(ScramError):
        vector().final(final)


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_client_with_the_password_gets_in(mechanism: str) -> None:
    credential = derive_credential(mechanism, "pass,wörd=".encode())
    client = ScramClientExchange(mechanism, "a,b=c", "pass,wörd=")
    server = ScramExchange(ClientFirst.parse(client.first()), credential)
    client.finish(server.final(client.final(server.first())))


@pytest.mark.parametrize("mechanism", HASHES)
def test_nobody_gets_in_by_a_decoy(mechanism: str) -> None:
    client = ScramClientExchange(mechanism, "mallory", "")
    server = ScramExchange(ClientFirst.parse(client.first()), decoy_of(mechanism, "mallory", b"secret"))
    with pytest.raises(ScramError):
        server.final(client.final(server.first()))
