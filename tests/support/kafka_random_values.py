"""Random values of Kafka's messages, by their fields."""

from __future__ import annotations

import random
import uuid
from typing import Any

from broker_core.wire.kafka import Fields, Struct
from broker_core.wire.kafka.fields import BYTES, STRING, UUID, Array, Kind, Versions

__all__ = ["random_value"]


def random_value(struct: Struct, version: int, chance: random.Random, *, most: int = 3) -> Fields:
    """A value of one version, without tagged fields; arrays have up to ``most`` elements."""
    return {
        each.name: _value(each.kind, version, chance, most)
        for each in struct.fields
        if each.tag is None and version in Versions.parse(each.versions)
    }


def _value(kind: Kind, version: int, chance: random.Random, most: int) -> Any:
    if isinstance(kind, Array):
        return [_value(kind.of, version, chance, most) for _ in range(chance.randint(0, most))]
    if isinstance(kind, Struct):
        return random_value(kind, version, chance, most=most)
    if kind is STRING:
        return chance.choice(("", "x", "text" * chance.randint(1, 60)))
    if kind is BYTES:
        return chance.randbytes(chance.choice((0, 3, 200)))
    if kind is UUID:
        return uuid.UUID(int=chance.getrandbits(128))
    if kind.packed == "?":
        return chance.random() < 0.5
    return chance.randint(0, 100)
