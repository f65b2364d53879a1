"""Random requests to two servers side by side: creates, deletes, changes and descriptions, by name and by id."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.interop.kafka_clients.python.case_lines import NO_SUCH_ID
from tests.interop.kafka_clients.python.raw_requests import RawRequests
from tests.interop.kafka_programs import canonical

__all__ = ["Ask", "Difference", "SideBySide", "asks"]

#: Some collide, some are illegal, and no name is in a prefix of its own.
_NAMES: Final = ("a", "b", "c.d", "c_d", "c.e", "long" * 62, "e-f", "G", "_h", "__i", "0")
_ILLEGAL: Final = ("", ".", "..", "x y", "x/y", "\u00e9", "x" * 250)
_RIGHT: Final[tuple[tuple[str, str], ...]] = (
    ("retention.ms", "1000"),
    ("retention.ms", "-1"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "delete,compact"),
    ("min.insync.replicas", "2"),
    ("compression.type", "zstd"),
    ("preallocate", "true"),
    ("segment.bytes", "1048576"),
    ("min.cleanable.dirty.ratio", "0.25"),
    ("max.message.bytes", "007"),
    ("flush.ms", " 5 "),
    ("local.retention.bytes", "9"),
)
#: Wrong values, wrong combinations, and a name that there is not. A request has one at most: of several, Kafka tells
#: the one that comes first in the order of its hash table.
_WRONG: Final[tuple[tuple[str, str], ...]] = (
    ("retention.ms", "-2"),
    ("retention.ms", "x"),
    ("cleanup.policy", "neither"),
    ("min.insync.replicas", "0"),
    ("compression.type", "zip"),
    ("preallocate", "maybe"),
    ("segment.bytes", "10"),
    ("min.cleanable.dirty.ratio", "1.5"),
    ("max.message.bytes", "9999999999"),
    ("local.retention.bytes", "-3"),
    ("remote.storage.enable", "true"),
    ("no.such", "1"),
)
#: Kafka's listings show a change some milliseconds after its answer; a real broker is asked again for so long.
_PATIENCE: Final = 60.0


@dataclass(frozen=True)
class Ask:
    """A request: a method of :class:`RawRequests` with its arguments; an id is the number of a topic, or ``-1``."""

    method: str
    arguments: tuple[Any, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        return self.method in ("create", "delete", "partitions", "alter", "replace_configs")


@dataclass(frozen=True)
class Id:
    """The id of the topic that was created so many topics ago, deleted or not; negative: of none."""

    number: int


class Difference(AssertionError):
    """Two servers gave different answers."""


def asks(seed: int, count: int) -> Iterator[Ask]:
    """Random requests, the same of each seed."""
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.choices(
            (_create, _delete, _partitions, _alter, _replace, _metadata, _configs, _pages),
            (5, 3, 2, 3, 1, 5, 2, 3),
        )[0]
        yield kind(rng)


def _name(rng: random.Random) -> str:
    return rng.choice(_ILLEGAL if rng.random() < 0.08 else _NAMES)


def _values(rng: random.Random, count: int, *, wrong: bool = True) -> dict[str, str]:
    found = dict(rng.sample(_RIGHT, count))
    if wrong and rng.random() < 0.15:
        found |= [rng.choice(_WRONG)]
    return found


def _create(rng: random.Random) -> Ask:
    topics = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        topic: dict[str, Any] = {
            "name": _name(rng),
            "num_partitions": rng.choice((-1, 1, 1, 2, 3, 5, 0, -2)),
            "replication_factor": rng.choice((-1, 1, 1, 1, 1, 2, 0)),
        }
        chosen = _values(rng, rng.choice((0, 0, 1, 2)))
        topic["configs"] = [{"name": name, "value": value} for name, value in chosen.items()]
        if rng.random() < 0.1:
            topic |= {"num_partitions": -1, "replication_factor": -1}
            rows = rng.choice(
                (((0, [1]),), ((0, [1]), (1, [1])), ((0, [1]), (2, [1])), ((0, [2]),), ((0, [1, 1]),))
            )
            topic["assignments"] = [{"partition_index": index, "broker_ids": ids} for index, ids in rows]
        topics.append(topic)
    version = 7 if rng.random() < 0.5 else rng.randint(2, 6)
    return Ask("create", tuple(topics), {"version": version, "validate_only": rng.random() < 0.2})


def _delete(rng: random.Random) -> Ask:
    version = 6 if rng.random() < 0.6 else rng.randint(1, 5)
    topics: list[dict[str, Any]] = []
    for _ in range(rng.choice((1, 1, 2))):
        if version < 6 or rng.random() < 0.5:
            topics.append({"name": _name(rng)})
        else:
            topics.append({"name": _name(rng) if rng.random() < 0.1 else None, "topic_id": _id(rng)})
    return Ask("delete", tuple(topics), {"version": version})


def _id(rng: random.Random) -> Id:
    return Id(-1 if rng.random() < 0.15 else rng.randrange(8))


def _partitions(rng: random.Random) -> Ask:
    fields: dict[str, Any] = {"version": rng.randint(0, 3), "validate_only": rng.random() < 0.2}
    if rng.random() < 0.1:
        fields["assignments"] = [{"broker_ids": rng.choice(([1], [2], [1, 1]))}]
    return Ask("partitions", (_name(rng), rng.choice((0, 1, 2, 4, 6, -1))), fields)


def _alter(rng: random.Random) -> Ask:
    operations: list[tuple[str, int, str | None]] = [
        (name, 0, value) for name, value in _values(rng, rng.choice((0, 1, 2)), wrong=False).items()
    ]
    name, value = rng.choice(_RIGHT + _WRONG)
    kind = rng.choice((0, 1, 1, 2, 3, 9))
    operations.append((name, kind, None if kind == 1 or rng.random() < 0.05 else value))
    return Ask(
        "alter",
        (_name(rng), *operations),
        {"version": rng.randint(0, 1), "validate_only": rng.random() < 0.2},
    )


def _replace(rng: random.Random) -> Ask:
    values = _values(rng, rng.choice((0, 1, 2)))
    return Ask("replace_configs", (_name(rng), values), {"version": rng.randint(0, 2)})


def _metadata(rng: random.Random) -> Ask:
    version = rng.choice((13, 13, 12, *range(12)))
    fields: dict[str, Any] = {"topics": None}
    if rng.random() < 0.7:
        by_id = version >= 10 and rng.random() < 0.5
        number = rng.choice((1, 2, 3))
        if by_id:
            name = None if version >= 12 else ""
            fields["topics"] = [{"topic_id": _id(rng), "name": name} for _ in range(number)]
        else:
            fields["topics"] = [_name(rng) for _ in range(number)]
    if version >= 8 and rng.random() < 0.3:
        fields["include_topic_authorized_operations"] = True
    return Ask("metadata", (version,), fields)


def _configs(rng: random.Random) -> Ask:
    keys = rng.choice((None, [], ["retention.ms", "cleanup.policy"], ["no.such"]))
    fields: dict[str, Any] = {"version": rng.randint(1, 4), "include_synonyms": rng.random() < 0.5}
    if fields["version"] >= 3:
        fields["include_documentation"] = rng.random() < 0.2
    return Ask("configs", ((2, _name(rng), keys),), fields)


def _pages(rng: random.Random) -> Ask:
    # An empty name makes Kafka fail: it answers -1 for each topic.
    names = tuple(_name(rng) or "x y" for _ in range(rng.choice((0, 0, 1, 3))))
    cursor = (_name(rng), rng.choice((0, 1, 2, 9, -1))) if rng.random() < 0.5 else None
    return Ask("pages", names, {"limit": rng.choice((1, 2, 3, 2000, 0, -1)), "cursor": cursor})


class SideBySide:
    """This server and a broker, with the same topics, whose ids are known as pairs."""

    def __init__(self, here: RawRequests, broker: RawRequests) -> None:
        self._servers = (here, broker)
        #: The ids of each topic, here and there, oldest first.
        self._ids: list[tuple[uuid.UUID, uuid.UUID]] = []
        self._labels: tuple[dict[str, str], dict[str, str]] = ({}, {})
        #: Requests that were answered, and those that changed something.
        self.asked = self.changed = 0

    def clear(self) -> None:
        """Delete all topics but internal ones."""
        for server in self._servers:
            names = [name for name in server.ids() if name != "__consumer_offsets"]
            if names:
                server.delete(*({"name": name} for name in names))
        self._agree()

    def ask(self, ask: Ask) -> None:
        """Ask both. Raises :exc:`Difference` if the answers differ, except in ids."""
        here = self._plain(0, ask)
        until = time.monotonic() + _PATIENCE
        while (there := self._plain(1, ask)) != here:
            if ask.changes or time.monotonic() > until:
                raise Difference(f"{ask}\n  a broker: {json.dumps(there)}\n  here:     {json.dumps(here)}")
            time.sleep(0.01)
        self.asked += 1
        if ask.changes:
            self.changed += 1
            self._agree()

    def _agree(self) -> None:
        """Wait until both list the same names, and know the ids of the new ones."""
        here = self._servers[0].ids()
        until = time.monotonic() + _PATIENCE
        while set(there := self._servers[1].ids()) != set(here):
            if time.monotonic() > until:
                raise Difference(f"a broker lists {sorted(there)}, here are {sorted(here)}")
            time.sleep(0.01)
        for name in sorted(here):
            if str(here[name]) not in self._labels[0]:
                pair = (here[name], there[name])
                for label, each in zip(self._labels, pair, strict=True):
                    label[str(each)] = f"id {len(self._ids)}"
                self._ids.append(pair)

    def _plain(self, side: int, ask: Ask) -> Any:
        """The answer of a server, with ids as those of both."""
        method = getattr(self._servers[side], ask.method)
        answer = method(*self._with_ids(side, ask.arguments), **self._with_ids(side, dict(ask.fields)))
        return canonical(ask.method, self._without_ids(side, answer))

    def _with_ids(self, side: int, value: Any) -> Any:
        if isinstance(value, Id):
            known = 0 <= value.number < len(self._ids)
            return self._ids[-1 - value.number][side] if known else NO_SUCH_ID
        if isinstance(value, dict):
            return {name: self._with_ids(side, each) for name, each in value.items()}
        return (
            type(value)(self._with_ids(side, each) for each in value)
            if isinstance(value, list | tuple)
            else value
        )

    def _without_ids(self, side: int, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._without_ids(side, each, name) for name, each in value.items()}
        if isinstance(value, list | tuple | set):
            return [self._without_ids(side, each) for each in value]
        if key in ("cluster_id", "port", "host"):
            return key
        if isinstance(value, uuid.UUID):
            return (
                "none"
                if value in (NO_SUCH_ID, uuid.UUID(int=0))
                else self._labels[side].get(str(value), "new")
            )
        return value
