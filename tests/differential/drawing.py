"""Random parts of requests, from a seed: names, patterns, properties, tokens of earlier answers, and wrong values."""

from __future__ import annotations

import base64
import json
import uuid
from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Any, Final, TypeVar

from tests.differential.comparison import Pairs
from tests.differential.world import CATALOGUED, NAMESPACES, topic_names

__all__ = ["Draw", "Hole"]

_T = TypeVar("_T")

#: What stands in the request of the first server, and what in that of the second.
Hole = tuple[bytes, bytes]

_PATTERNS: Final = (
    "{namespace}/orders.*",
    "persistent://{namespace}/.*-1",
    "{namespace}/(orders|bills|large)-.*",
    ".*",
    "{namespace}/.*hidden.*",
    "{namespace}/.*é.*",
    "acme/.*",
    "(",
    "a(?=b)",
    "x" * 1500,
    "",
    "{namespace}/[a-m].*[0-9]{{1,2}}",
    "^persistent://{namespace}/large-000..$",
    "(?i){namespace}/UPPER.*",
    "non-persistent://{namespace}/.*",
)
_ODD_NAMES: Final = (
    "",
    ".",
    "..",
    "a/b",
    "a b",
    "x" * 249,
    "x" * 250,
    "\u2603",
    "__consumer_offsets",
    "t-partition-01",
    "t-partition-x",
    "new-2-partition-0",
    "orders-0-partition-9",
    "orders-3-partition-0",
    "lone-partition-3",
    "lone",
    "volatile",
    "#",
    "%2F",
    "a:b",
)
_JUNK: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1.5, 3, 2**31, 2**70, "", "x", "1", "é", "\x00", [], {}, ["x"], {"x": 1}, [[]], "x" * 300,
)  # fmt: skip


class Draw:
    """Draws the parts of one request; ``holes`` are what differs between the two servers by then."""

    def __init__(self, random: Random, pairs: Pairs) -> None:
        self.random = random
        self.pairs = pairs
        self.holes: list[Hole] = []

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def of(self, values: Sequence[_T] | deque[_T]) -> _T:
        return self.random.choice(values)

    def namespace(self) -> str:
        """Mostly one with topics."""
        if self.chance(0.03):
            return self.of(("", "acme", "a/b/c", "acme/", "/shop", "acme/é", "acme/" + "n" * 300, "a b/c"))
        return self.of(CATALOGUED) if self.chance(0.65) else self.of(NAMESPACES)

    def local_name(self) -> str:
        """Of a topic that is there, that comes and goes, of a partition, or a wrong one."""
        kind = self.random.random()
        if kind < 0.08:
            return self.of(_ODD_NAMES)
        if kind < 0.35:
            name = f"{self.of(('new', 'new-hidden', 'gated-new'))}-{self.random.randrange(14)}"
        elif kind < 0.45:
            name = f"topic-{self.random.randrange(30)}"
        elif kind < 0.5:
            name = f"large-{self.random.randrange(3100):05}"
        else:
            name = self.of(topic_names())
        return f"{name}-partition-{self.random.randrange(4)}" if self.chance(0.15) else name

    def domain(self) -> str:
        return "non-persistent" if self.chance(0.08) else "persistent"

    def topic(self) -> str:
        """A full name, or nearly one."""
        if self.chance(0.04):
            return self.of(("", "x", "persistent://a/b", "persistent:/a/b/c", "ftp://acme/shop/x", "a/b/c/d"))
        return f"{self.domain()}://{self.namespace()}/{self.local_name()}"

    def pattern(self, namespace: str) -> str:
        return self.of(_PATTERNS).format(namespace=namespace)

    def properties(self, most: int = 3) -> dict[str, str]:
        if self.chance(0.02):
            return {f"key-{number}": "v" * self.of((1, 400)) for number in range(70)}
        keys = ("region", "team", "color", "é", "")
        values = ("eu", "us", "team-1", "team-4", "", "x,y", "a=b", "é" * 3)
        return {self.of(keys): self.of(values) for _ in range(self.random.randrange(most + 1))}

    def configs(self) -> dict[str, Any]:
        names = ("retention.ms", "cleanup.policy", "max.message.bytes", "nothing.such", "segment.bytes", "")
        values = ("1000", "compact", "delete", "-1", "x", "", "compact,delete", None)
        return {self.of(names): self.of(values) for _ in range(self.random.randrange(3))}

    def number(self) -> int:
        """Of partitions, mostly small."""
        return self.of(
            (0, 1, 1, 2, 3, 4, 5, 7, -1, 100, 1_000_001, 2**31 - 1) if self.chance(0.4) else (0, 1, 3)
        )

    def kept(self, kind: str, default: str) -> str:
        """A token of an earlier answer, in the words of the first server."""
        found = self.pairs.drawn(self.random, kind)
        if found is None:
            return default
        first, second = found
        if first != second:
            self.holes.append((first.encode(), second.encode()))
        return first

    def topic_id(self) -> uuid.UUID:
        """Mostly one that a topic has, or had."""
        if self.chance(0.05):
            return uuid.UUID(int=self.of((0, 1, self.random.getrandbits(128))))
        found = self.pairs.drawn(self.random, "id")
        if found is None:
            return uuid.UUID(int=7)
        first, second = (_id_of(text) for text in found)
        if first != second:
            self.holes += [
                (first.bytes, second.bytes),
                (first.hex.encode(), second.hex.encode()),
                (str(first).encode(), str(second).encode()),
                (found[0].encode(), found[1].encode()),
            ]
        return first

    def spoiled(self, value: Any) -> Any:
        """A copy of plain JSON with one thing of it wrong."""
        if isinstance(value, dict) and value and self.chance(0.8):
            name = self.of(sorted(value))
            return value | {name: self.spoiled(value[name])}
        if isinstance(value, dict) and self.chance(0.5):
            return value | {self.of(("unknown", "partitions", "properties", "")): self.of(_JUNK)}
        return self.of(_JUNK)

    def json_text(self, value: Any, *, spoil: float = 0.3) -> bytes:
        """Mostly the value as JSON; now and then another one, or none at all."""
        if self.chance(spoil):
            value = self.spoiled(value)
            if self.chance(0.25):
                text = json.dumps(value)
                return self.of(
                    (
                        text[:-1],
                        text + "x",
                        "",
                        "[" * 3000,
                        "NaN",
                        '{"partitions": 1, "partitions": 2}',
                        '{"properties": {"a": "\\ud800"}}',
                        '{"partitions": 1e400}',
                        '{"partitions": ' + "9" * 5000 + "}",
                        "\ufeff{}",
                    )
                ).encode()
            if self.chance(0.1):
                return json.dumps(value).encode("utf-16") + b"\xff"
        return json.dumps(value, ensure_ascii=self.chance(0.5)).encode(errors="surrogatepass")

    def damaged(self, data: bytes) -> bytes:
        """Some bytes of a message are others, or missing."""
        changed = bytearray(data)
        for _ in range(self.random.randrange(1, 4)):
            place = self.random.randrange(len(changed))
            changed[place] = self.random.randrange(256)
        return bytes(changed[: self.random.randrange(len(changed))] if self.chance(0.2) else changed)


def _id_of(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
