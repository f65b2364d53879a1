"""The count and topics hash of each question, added up from the postings of segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from broker_core import EncodedNames
from broker_core_spark.batch.segments.segment_task import SegmentResult
from broker_core_spark.format.canonical_question import CanonicalQuestion

__all__ = ["QuestionTotal", "question_totals"]

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class QuestionTotal:
    """The number of topics of a question, and their hash."""

    question: CanonicalQuestion
    count: int
    topics_hash: str


def question_totals(
    questions: Iterable[CanonicalQuestion], segments: Sequence[SegmentResult]
) -> list[QuestionTotal]:
    """The totals of the questions, in their order. ``segments`` are all of the generation, in order."""
    asked = list(questions)
    parts: dict[tuple[str, str], list[_Array]] = {}
    for segment in segments:
        for (namespace, domain, _), run_entries in zip(segment.entry.runs, segment.run_entries, strict=True):
            parts.setdefault((namespace, domain), []).append(run_entries)
    found = {place: _by_key(np.concatenate(run_entries)) for place, run_entries in parts.items()}
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
    hashes = [EncodedNames.hash_of_crc(0)] * len(asked)
    if groups:
        sizes = [sum(len(part) for part in picked) for _, picked in groups]
        every = np.concatenate([part for _, picked in groups for part in picked])
        starts = np.cumsum([0, *sizes[:-1]])
        crcs, _ = EncodedNames.joined_crcs(every["crc"], every["joined"], starts)
        sums = np.add.reduceat(every["count"].astype(np.int64), starts)
        for (number, _), crc, count in zip(groups, crcs.tolist(), sums.tolist(), strict=True):
            counts[number], hashes[number] = count, EncodedNames.hash_of_crc(crc)
    return [
        QuestionTotal(question, count, text)
        for question, count, text in zip(asked, counts, hashes, strict=True)
    ]


def _by_key(run_entries: _Array) -> dict[bytes, _Array]:
    """The entries of each key, in the order of segments."""
    data = np.ascontiguousarray(run_entries["key"]).tobytes()
    keys = np.frombuffer(data, "V16")
    different, which = np.unique(np.frombuffer(data, ">u8").reshape(-1, 2), axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(len(different) + 1))
    return {
        keys[order[low]].tobytes(): run_entries[order[low:high]]
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    }
