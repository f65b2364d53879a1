"""The count and the topics hash of each question, from those of segments: no name is looked at again."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from broker_core.topics_hash import EMPTY_HASH, crc_text
from broker_core_spark.batch.segment_task import SegmentResult
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format import layout
from broker_core_spark.format.crc_combine import joined_groups
from broker_core_spark.format.manifest import SegmentEntry
from broker_core_spark.format.question import Question
from broker_core_spark.store import Store

__all__ = ["QuestionTotal", "read_tallies", "total_of_questions"]

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class QuestionTotal:
    """How many topics a question has, and their hash."""

    question: Question
    count: int
    topics_hash: str


def total_of_questions(
    questions: Iterable[Question], segments: Sequence[SegmentResult]
) -> list[QuestionTotal]:
    """The totals of the questions, in their order; ``segments`` are all of the generation, in order."""
    asked = list(questions)
    parts: dict[tuple[str, str], list[_Array]] = {}
    for segment in segments:
        for (namespace, domain, _), tallies in zip(segment.entry.runs, segment.tallies, strict=True):
            parts.setdefault((namespace, domain), []).append(tallies)
    found = {place: _by_key(np.concatenate(tallies)) for place, tallies in parts.items()}
    groups: list[tuple[int, list[_Array]]] = []
    for number, question in enumerate(asked):
        key = question.selector.key
        picked = [
            found[question.namespace, domain][key]
            for domain in question.domains
            if key in found.get((question.namespace, domain), {})
        ]
        if picked:
            groups.append((number, picked))
    counts = [0] * len(asked)
    hashes = [EMPTY_HASH] * len(asked)
    if groups:
        sizes = [sum(len(part) for part in picked) for _, picked in groups]
        every = np.concatenate([part for _, picked in groups for part in picked])
        starts = np.cumsum([0, *sizes[:-1]])
        crcs, _ = joined_groups(every["crc"], every["joined"], starts)
        sums = np.add.reduceat(every["count"].astype(np.int64), starts)
        for (number, _), crc, count in zip(groups, crcs.tolist(), sums.tolist(), strict=True):
            counts[number], hashes[number] = count, crc_text(crc)
    return [
        QuestionTotal(question, count, text)
        for question, count, text in zip(asked, counts, hashes, strict=True)
    ]


def _by_key(tallies: _Array) -> dict[bytes, _Array]:
    """The tallies of each key, in the order of segments."""
    data = np.ascontiguousarray(tallies["key"]).tobytes()
    keys = np.frombuffer(data, "V16")
    different, which = np.unique(np.frombuffer(data, ">u8").reshape(-1, 2), axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(len(different) + 1))
    return {
        keys[order[low]].tobytes(): tallies[order[low:high]]
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    }


def read_tallies(store: Store, entry: SegmentEntry) -> SegmentResult:
    """What a segment that is kept says of its selectors, by a few short reads of its file.

    The build has read the file and found it whole, and whoever serves it verifies it again. Raises
    :exc:`~broker_core_spark.errors.InvalidGeneration` where it is not what the manifest says.
    """
    try:
        end = entry.size - layout.TRAILER.size
        at, size, magic = layout.TRAILER.unpack(store.get_range(entry.name, end, entry.size))
        if magic != layout.TRAILER_MAGIC or at + size != end or size > layout.DIRECTORY_LIMIT:
            raise ValueError("its end is not that of a segment")
        tallies: list[_Array] = []
        start = layout.HEADER.size
        runs = json.loads(store.get_range(entry.name, at, end))["runs"]
        for run, (namespace, domain, names) in zip(runs, entry.runs, strict=True):
            if (run["namespace"], run["domain"], run["names"]) != (namespace, domain, names):
                raise ValueError("its runs are not those of the manifest")
            place = layout.RunPlace(start, names, run["fields_size"], run["entries"], run["rows"])
            data = store.get_range(entry.name, place.entries_at, place.entries_at + place.entries_size)
            tallies.append(np.frombuffer(data, layout.ENTRY))
            start = place.end
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise InvalidGeneration(entry.name, str(error)) from None
    return SegmentResult(entry, tuple(tallies), new=False, duplicates=0)
