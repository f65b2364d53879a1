"""Fuzzes Kafka's messages and connections with libFuzzer: ``make fuzz ARGS="-max_total_time=600"``.

It ends with a stack trace, and a file `crash-*` of the bytes, if something other than a refusal comes out.
"""

from __future__ import annotations

import asyncio
import sys

import atheris

with atheris.instrument_imports(include=["broker_core.wire.kafka", "broker_core.servers.kafka"]):
    from broker_core.wire.kafka import APIS, SASL_HANDSHAKE, request_frame
    from tests.support.kafka_hostile_connection import HostileConnection
    from tests.support.kafka_logins import ALL, StoredUsersOfTest, logins_of
    from tests.support.kafka_mutations import read_or_refused
    from tests.support.kafka_oracles import DIRECTIONS
    from tests.support.kafka_values import versions_of

_MESSAGES = [(each, direction) for each in versions_of(*APIS.values()) for direction in DIRECTIONS]
_LOGINS = logins_of(StoredUsersOfTest(alice="pencil"))
_LOOP = asyncio.new_event_loop()


def one(data: bytes) -> None:
    """The first byte says what the others are: one message, or a stream of a connection."""
    if len(data) < 2:
        return
    kind, choice, rest = data[0], data[1], data[2:]
    if kind >= 16:
        (api, version), direction = _MESSAGES[(kind << 8 | choice) % len(_MESSAGES)]
        read_or_refused(api, direction, version, rest)
        return
    connection = HostileConnection(_LOGINS if kind % 4 else None)
    if kind % 4 > 1:  # with the handshake done
        mechanism = ALL[choice % len(ALL)]
        rest = request_frame(SASL_HANDSHAKE, 3 - kind % 4, 1, "", {"mechanism": mechanism}) + rest
    _LOOP.run_until_complete(connection.take(rest))


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
