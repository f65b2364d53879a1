"""Bounds are those of what they are for."""

from __future__ import annotations

import struct

from broker_core.pattern_and_replica_bounds import MAX_PATTERN, MAX_REPLICATION
from broker_core.patterns import compile_pattern
from broker_core.settings import Settings


def test_the_most_replicas_are_those_of_kafkas_messages() -> None:
    assert struct.unpack(">h", struct.pack(">h", MAX_REPLICATION)) == (MAX_REPLICATION,)


def test_a_pattern_of_the_default_length_is_compiled() -> None:
    assert Settings().patterns.max_length == MAX_PATTERN
    assert compile_pattern("a" * MAX_PATTERN).supported
    assert not compile_pattern("a" * (MAX_PATTERN + 1)).supported
