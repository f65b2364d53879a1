"""Random creates, changes, deletes and descriptions of topics, at this server and at Kafka 4.3.1: equal answers."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.interop.kafka_clients.python.case_lines import Server
from tests.interop.kafka_clients.python.raw_requests import RawRequests
from tests.interop.kafka_peer import KafkaBroker
from tests.interop.kafka_random import Difference, SideBySide, asks
from tests.interop.kafka_stage import kafka_server
from tests.interop.maven import PeerUnavailable
from tests.interop.record_kafka_clients import PLAIN, prepare

pytestmark = pytest.mark.interop

#: `KAFKA_RANDOM_SECONDS=3600 KAFKA_RANDOM_SEED=1 pytest ...` asks for longer, and other things.
_SECONDS: Final = float(os.environ.get("KAFKA_RANDOM_SECONDS", "60"))
_SEED: Final = int(os.environ.get("KAFKA_RANDOM_SEED", "0"))
#: Requests of a sequence, which begins without topics.
_LENGTH: Final = 60


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SideBySide]:
    folder: Path = tmp_path_factory.mktemp("side-by-side")
    try:
        broker = KafkaBroker(folder, PLAIN)
    except PeerUnavailable as error:
        pytest.skip(str(error))
    with broker, kafka_server(folder / "here") as here:
        there = Server(broker.address)
        prepare(there)
        with closing(RawRequests(here.clients)) as ours, closing(RawRequests(there)) as theirs:
            yield SideBySide(ours, theirs)


def test_random_sequences_have_equal_answers(both: SideBySide) -> None:
    until = time.monotonic() + _SECONDS
    for seed in itertools.count(_SEED * 1_000_000):
        both.clear()
        for number, ask in enumerate(asks(seed, _LENGTH)):
            try:
                both.ask(ask)
            except Difference as error:
                error.add_note(f"request {number} of the sequence {seed}")
                raise
        if time.monotonic() > until:
            break
    assert both.changed > 100, f"only {both.changed} of {both.asked} requests changed anything"
