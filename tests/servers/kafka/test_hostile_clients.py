"""Bytes of strangers before, during and after SASL, over the handler of one connection: answered, or closed."""

from __future__ import annotations

import random
import struct

import pytest

from broker_core.service import Logins
from broker_core.wire.kafka import APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE, request_frame
from tests.support.examples import examples
from tests.support.kafka_hostile_connection import HostileConnection
from tests.support.kafka_logins import ALL
from tests.support.kafka_mutations import damaged


def shake(mechanism: str, version: int = 1) -> bytes:
    return request_frame(SASL_HANDSHAKE, version, 1, "me", {"mechanism": mechanism})


def token(data: bytes) -> bytes:
    return request_frame(SASL_AUTHENTICATE, 2, 2, "me", {"auth_bytes": data})


STREAMS = {
    "nothing": b"",
    "a length of two gigabytes": struct.pack(">i", 2**31 - 1),
    "a negative length": b"\xff\xff\xff\xff",
    "less than a header": b"\x00\x00\x00\x01\x00",
    "an unknown API": struct.pack(">ihhi", 10, 999, 0, 1) + b"\xff\xff",
    "a client id that is longer": struct.pack(">ihhih", 10, 18, 0, 1, 2**15 - 1),
    "a mechanism that is not there": shake("GSSAPI"),
    "a token before the handshake": token(b"\0alice\0pencil"),
    "a token without a password": shake("PLAIN") + token(b"alice"),
    "SCRAM's last message first": shake("SCRAM-SHA-256") + token(b"c=biws,r=x,p=eA=="),
    "an empty message of SCRAM": shake("SCRAM-SHA-512") + token(b""),
    "a bare token of zero bytes": shake("SCRAM-SHA-256", 0) + b"\0\0\0\0",
    "a bare token of no UTF-8": shake("PLAIN", 0) + b"\0\0\0\x03\0\xff\xfe",
    "two handshakes": shake("PLAIN") + shake("PLAIN"),
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("with_sasl", [True, False])
async def test_odd_streams_are_answered_or_closed(logins: Logins, stream: bytes, with_sasl: bool) -> None:
    connection = HostileConnection(logins if with_sasl else None)
    await connection.take(stream)
    assert connection.held <= len(stream)


@pytest.mark.parametrize("with_sasl", [True, False])
async def test_damaged_requests_of_each_api_are_answered_or_closed(logins: Logins, with_sasl: bool) -> None:
    chance = random.Random(1)
    for api in APIS.values():
        for version in range(api.versions.first, api.versions.last + 1):
            frame = request_frame(api, version, 1, "me", {})
            for stream in damaged(frame, chance, examples(10)):
                await HostileConnection(logins if with_sasl else None).take(stream)


async def test_damaged_exchanges_of_sasl_are_answered_or_closed(logins: Logins) -> None:
    chance = random.Random(2)
    for mechanism in ALL:
        for stream in damaged(token(b"n,,n=alice,r=abcdefghijklmnop"), chance, 20):
            await HostileConnection(logins).take(shake(mechanism) + stream)
