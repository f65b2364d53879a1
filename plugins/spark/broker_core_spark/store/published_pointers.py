"""Published generations: reading pointers, the current one and the one before it.

A pointer is a small file with a number as its name. Brokers serve the generation of the highest number. A pointer is
created once and never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from broker_core_spark.errors import DamagedFile, InvalidGeneration, NoSuchGeneration
from broker_core_spark.store.store import Store

__all__ = [
    "GENERATION_ID",
    "POINTERS",
    "PublishedPointer",
    "current_pointer",
    "find_generation",
    "highest_number",
    "previous_generation",
    "read_pointers",
    "readable_pointers",
]

POINTERS: Final = "pointers"
#: The id of a generation.
GENERATION_ID: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PublishedPointer:
    """A pointer: ``generation`` is served from ``when`` (UTC, the publisher's clock) until a higher number exists.

    ``anew`` says that an operator chose it: losses are not compared with earlier publications.
    """

    number: int
    generation: str
    when: datetime
    anew: bool = False

    @property
    def path(self) -> str:
        return f"{POINTERS}/{self.number:012}.json"


def highest_number(store: Store) -> int:
    """The highest number of a pointer, or 0."""
    return max((number for number, _ in store.numbered(f"{POINTERS}/", ".json")), default=0)


def read_pointers(store: Store) -> Iterator[PublishedPointer | InvalidGeneration]:
    """All pointers, the newest first. An unreadable one is its error."""
    for number, path in store.numbered(f"{POINTERS}/", ".json"):
        try:
            data = store.get(path, limit=4096)
            if data is None:
                continue  # a gc removed it meanwhile
            record = json.loads(data.decode())
            generation, when = record["generation"], datetime.fromisoformat(record["when"])
            if not GENERATION_ID.fullmatch(generation) or when.tzinfo is None:
                raise ValueError("its generation or its time is none")
        except UnicodeDecodeError:
            yield InvalidGeneration(path, "it is no pointer to a generation: it is no text in UTF-8")
        except (DamagedFile, ValueError, TypeError, KeyError, RecursionError) as error:
            yield InvalidGeneration(path, f"it is no pointer to a generation: {error!s:.200}")
        else:
            yield PublishedPointer(number, generation, when, "anew" in record)


def readable_pointers(store: Store) -> Iterator[PublishedPointer]:
    """All readable pointers, the newest first."""
    return (found for found in read_pointers(store) if isinstance(found, PublishedPointer))


def current_pointer(store: Store) -> PublishedPointer | None:
    """The pointer to the served generation, or ``None`` before the first one.

    Raises :exc:`InvalidGeneration` if the newest pointer is unreadable: an older one must not count instead.
    """
    found = next(read_pointers(store), None)
    if isinstance(found, InvalidGeneration):
        raise found
    return found


def find_generation(store: Store, start: str) -> str:
    """The whole id of the generation that begins with ``start`` (at least 4 digits), published or not.

    Raises :exc:`NoSuchGeneration` without a generation, and with several.
    """
    if not re.fullmatch(r"[0-9a-f]{4,64}", start):
        raise NoSuchGeneration(f"{start!r:.100} is no generation: at least 4 of its hex digits")
    ids = {found.path.partition("/")[2].partition(".")[0] for found in store.list("manifests")}
    found = sorted(one for one in ids if one.startswith(start) and GENERATION_ID.fullmatch(one))
    if len(found) != 1:
        what = f"{len(found)} generations begin" if found else "no generation begins"
        raise NoSuchGeneration(f"{store.uri}: {what} with {start}")
    return found[0]


def previous_generation(store: Store) -> str:
    """The generation that was served before the current one. Raises :exc:`NoSuchGeneration` without one.

    If the newest pointer is unreadable, it is the generation of the newest readable one.
    """
    found = read_pointers(store)
    newest = next(found, None)
    served = newest.generation if isinstance(newest, PublishedPointer) else None
    for pointer in found:
        if isinstance(pointer, PublishedPointer) and pointer.generation != served:
            return pointer.generation
    raise NoSuchGeneration(
        f"{store.uri}: there is no other generation to go back to: none was published, or gc has removed it"
    )
