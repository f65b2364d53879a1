"""The catalogue and the patterns of the benchmark: 20 namespaces, one with half of all names, and 1,020 patterns.

Names are made of 40 domains, 12 regions, 12 words and four shapes, and have 34 bytes on average. Of the patterns 60 %
are a prefix, 25 % need something in the middle, 10 % are alternatives, and 5 % are the worst kind, with nothing to look
for. Everything follows from the arguments.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = [
    "NAMESPACES",
    "distinct_rows",
    "names_of",
    "namespace",
    "pattern_rows",
    "write_catalogue",
    "write_patterns",
]

NAMESPACES = 20
_CHUNK = 500_000
_DOMAINS = [f"dom{number:02}" for number in range(40)]
_REGIONS = ["eu", "us", "ap", "sa", "af", "me", "cn", "jp", "uk", "ca", "au", "in"]
_WORDS = ["orders", "payments", "invoices", "daily", "events", "audit"]
_WORDS += ["users", "clicks", "stock", "metrics", "logs", "alerts"]


def namespace(number: int) -> str:
    """The name of one of the namespaces; number 0 is the large one."""
    return f"tenant-{number % 4}/ns-{number:02}"


def names_of(number: int, first: int, count: int) -> pa.LargeStringArray:
    """Full names of one namespace, from the ``first`` on."""
    seed = np.random.default_rng([7, number, first])

    def words(values: list[str]) -> pa.Array:
        return pa.array(values, pa.large_string()).take(pa.array(seed.integers(0, len(values), count)))

    index = pa.array(np.arange(first, first + count)).cast(pa.large_string())
    index = pc.utf8_lpad(index, 7, "0")
    domain, region, word = words(_DOMAINS), words(_REGIONS), words(_WORDS)

    def joined(*parts: Any) -> pa.Array:
        texts = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in parts]
        return pc.binary_join_element_wise(*texts, pa.scalar("", pa.large_string()))

    head = f"persistent://{namespace(number)}/"
    shapes = [
        joined(head, domain, "-", word, "-", region, "-", index),
        joined(head, word, "-", domain, "-", region, "-", index),
        joined(head, region, ".", domain, ".", word, ".", index),
        joined(head, domain, "_", word, "_daily_", region, "_", index),
    ]
    return pc.choose(pa.array(np.arange(count) % 4), *shapes)


def write_catalogue(path: Path, topics: int) -> None:
    """``topics`` names as a Parquet file with the one column ``name``."""
    schema = pa.schema([("name", pa.large_string())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for number in range(NAMESPACES):
            share = topics // 2 if number == 0 else topics // 2 // (NAMESPACES - 1)
            if number == NAMESPACES - 1:
                share = topics - topics // 2 - (NAMESPACES - 2) * share
            for first in range(0, share, _CHUNK):
                names = names_of(number, first, min(_CHUNK, share - first))
                writer.write_table(pa.table([names], schema=schema))


def pattern_rows(count: int) -> Iterator[dict[str, Any]]:
    """``count`` questions: half about the large namespace, the others about the small ones in turn."""
    pick = random.Random(11)
    for number in range(count):
        place = 0 if number % 2 else 1 + number // 2 % (NAMESPACES - 1)
        name = namespace(place)
        domain, word, region = pick.choice(_DOMAINS), pick.choice(_WORDS), pick.choice(_REGIONS)
        kind = pick.random()
        if kind < 0.6:
            tail = f"{domain}-{word}-{region}-" if number % 4 < 2 else f"{word}-{domain}-"
            pattern = f"{name}/{tail}.*"
        elif kind < 0.85:
            digits = pick.randint(100, 999)
            pattern = f".*-{word}-{region}-.*{digits}.*" if number % 4 < 2 else f".*{digits}.*daily.*"
        elif kind < 0.95:
            other, place_name = pick.choice(_DOMAINS), pick.choice(_REGIONS)
            pattern = f"{name}/({domain}|{other})-.*-({region}|{place_name})-.*"
        else:
            pattern = pick.choice(
                [".*", ".*[13579].{8}", ".*[0-4].{12}", f"(?i:.*{word.upper()}.*)", ".*1.*2.*3.*1"]
            )
        yield {"namespace": name, "mode": "PERSISTENT", "pattern": pattern, "properties": {}}


def distinct_rows(count: int) -> Iterator[dict[str, Any]]:
    """``count`` different questions with the same shares of namespaces and of kinds of patterns."""
    pick = random.Random(12)
    requested: set[tuple[str, str]] = set()
    number = 0
    while len(requested) < count:
        place = 0 if number % 2 else 1 + number // 2 % (NAMESPACES - 1)
        name = namespace(place)
        domain, word, region = pick.choice(_DOMAINS), pick.choice(_WORDS), pick.choice(_REGIONS)
        digits = f"{pick.randint(0, 9999):04}"
        kind = pick.random()
        if kind < 0.6:
            pattern = f"{name}/{domain}-{word}-{region}-{digits}.*"
        elif kind < 0.85:
            pattern = f".*-{word}-{region}-.*{digits}.*" if number % 4 < 2 else f".*{digits}.*daily.*"
        elif kind < 0.95:
            other, place_name = pick.choice(_DOMAINS), pick.choice(_REGIONS)
            pattern = f"{name}/({domain}|{other})-.*-({region}|{place_name})-.*"
        else:
            pattern = f".*[{digits[:3]}].{{{pick.randint(1, 30)}}}"
        number += 1
        if (name, pattern) not in requested:
            requested.add((name, pattern))
            yield {"namespace": name, "mode": "PERSISTENT", "pattern": pattern, "properties": {}}


def write_patterns(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Questions as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
