"""The topics of a benchmark as files to import, made as columns: ten million names in ten seconds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.benchmarks.names import TAGS, TOPICS_PER_TAG, local_name

__all__ = ["PROPERTY_KEYS", "SMALL_TOPICS", "properties_of", "write_names", "write_properties"]

#: The selecting properties of a tenth of the topics.
PROPERTY_KEYS: Final = ("region", "team")
#: Topics of a small namespace.
SMALL_TOPICS: Final = 20
_EACH: Final = 1_000_000
_WITH_PROPERTIES: Final = 10  # each tenth topic
_TEXT: Final = pa.large_string()


def write_names(path: Path, size: int) -> None:
    """The lines of :func:`~tests.benchmarks.names.local_names`, for ``topics import``."""
    with path.open("wb") as out:
        for low in range(0, size, _EACH):
            numbers = np.arange(low, min(low + _EACH, size))
            parts: list[Any] = [_text("device-"), _digits(numbers, 7)]
            for tag, factor in TAGS:
                parts += [_text(f"-{tag}"), _digits(numbers * factor % size // TOPICS_PER_TAG, 4)]
            lines = pc.binary_join_element_wise(*parts, _text("\n"), _text(""))
            out.write(lines.buffers()[2])


def properties_of(number: int) -> dict[str, str] | None:
    """The properties of the topic with this number: ten regions, a thousand teams."""
    if number % _WITH_PROPERTIES:
        return None
    return {"region": f"r{number // 10 % 10}", "team": f"t{number // 100 % 1_000}"}


def write_properties(path: Path, size: int) -> None:
    """The JSON lines of all topics that have properties."""
    with path.open("w", encoding="utf-8") as out:
        out.writelines(_lines(size))


def _lines(size: int) -> Iterator[str]:
    for number in range(0, size, _WITH_PROPERTIES):
        line = {"name": local_name(number, size), "properties": properties_of(number)}
        yield json.dumps(line) + "\n"


def _digits(numbers: np.ndarray[Any, Any], width: int) -> pa.LargeStringArray:
    return pc.utf8_lpad(pc.cast(pa.array(numbers), _TEXT), width, "0")


def _text(value: str) -> pa.Scalar[Any]:
    return pa.scalar(value, _TEXT)
