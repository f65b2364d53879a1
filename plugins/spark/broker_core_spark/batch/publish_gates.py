"""Gates before publishing: a generation that lost too much against generations of the last day is not published.

The usual causes are a broker that has just started and knows few questions, a wrong pattern file, a limit that refuses
patterns, and a catalogue that is half empty. Each loss is compared with the best generation of the day, so many small
losses add up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from broker_core.quantities import counted
from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.questions.load_questions import LoadedQuestions
from broker_core_spark.errors import DamagedFile, InvalidGeneration, NoSuchGeneration
from broker_core_spark.format import CanonicalQuestion, SegmentEntry
from broker_core_spark.settings import (
    MAX_COVERAGE_LOSS,
    MAX_QUESTION_LOSS,
    MAX_TOPIC_LOSS,
    MIN_QUESTIONS,
)
from broker_core_spark.store import PublishedPointer, Store, read_manifest, read_pointers

__all__ = [
    "HadBefore",
    "PublishGates",
    "PublishRefused",
    "PublishedBefore",
    "check_questions",
    "check_topics",
    "had_before",
    "published_before",
]

#: Less than one question, one topic or one point: shares are not exact in floats.
_ROUNDING: Final = 1e-9
#: Generations that were published so long ago are not compared with any more, but for the last one.
_DAY: Final = timedelta(days=1)
#: The most pointers of a day that are read, and generations that are compared with: their questions are read.
_MOST_POINTERS: Final = 200
_MOST_COMPARED: Final = 24
#: A generation that cannot be read (any more) is not compared with.
_UNREADABLE: Final = (InvalidGeneration, NoSuchGeneration, DamagedFile)


class PublishRefused(BatchError):
    """A gate refuses the generation. The message has the numbers of both generations.

    Its notes (:meth:`add_note`) are those of the build, such as its refused patterns: they may be the reason.
    """


@dataclass(frozen=True, slots=True)
class PublishGates:
    """The conditions for a generation. Losses are shares from 0 to 1, against the best generation of the last day.

    ``min_questions``: the fewest questions. ``max_question_loss``: of the number of questions. ``max_topic_loss``: of
    the topics in the namespaces that the questions name. ``max_coverage_loss``: of the share of asked questions that is
    precomputed, in points. ``allow_shrink`` opens all gates.
    """

    min_questions: int = MIN_QUESTIONS
    max_question_loss: float = MAX_QUESTION_LOSS
    max_topic_loss: float = MAX_TOPIC_LOSS
    max_coverage_loss: float = MAX_COVERAGE_LOSS
    allow_shrink: bool = False


@dataclass(frozen=True, slots=True)
class PublishedBefore:
    """The generation before: its canonical question lines, and its number of topics by namespace and domain."""

    generation: str
    lines: frozenset[bytes]
    topics: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class HadBefore:
    """A published generation, measured by the present questions: the number of its ``questions``, of the ``topics`` in
    the present namespaces, and of the ``times`` that its questions are asked now. ``generation`` begins its id.
    """

    generation: str
    questions: int
    topics: int
    times: int


def published_before(store: Store) -> tuple[PublishedBefore | None, str]:
    """The generation that is published now, or that of the newest readable pointer.

    ``None`` without one, and for one that cannot be read any more. The text is the reason why the gates have nothing to
    compare with, or an older generation; empty if they compare with what is published.
    """
    torn: InvalidGeneration | None = None
    for pointer in read_pointers(store):
        if isinstance(pointer, PublishedPointer):
            break
        torn = torn or pointer
    else:
        return None, f"no pointer can be read: {torn}" if torn else ""
    name = f"generation {pointer.generation[:12]}"
    try:
        found = _read(store, pointer.generation)
    except _UNREADABLE as error:
        return None, f"{name} cannot be read: {getattr(error, 'reason', error)}"
    return found, f"{torn}; they compared with {name}, the newest that a pointer names" if torn else ""


def _read(store: Store, generation: str) -> PublishedBefore:
    manifest = read_manifest(store, generation)
    data = store.get(manifest.questions.name, manifest.questions.size)
    if data is None:
        raise NoSuchGeneration(f"{manifest.questions.name} is not in the store")
    return PublishedBefore(generation, frozenset(data.splitlines()), manifest.counts())


def had_before(
    store: Store, before: PublishedBefore | None, loaded: LoadedQuestions, now: datetime | None = None
) -> tuple[HadBefore, ...]:
    """Generations of the last day, ``before`` first, each measured by the ``loaded`` questions.

    Generations before a publication that was to count alone (``--allow-shrink``, ``use``) are left out, and so are
    unreadable ones. Nothing without ``before``. Each is read on its own: their questions are not held at once.
    """
    if before is None:
        return ()
    times = {question.line: count for question, count in {**loaded.refused_times, **loaded.times}.items()}
    named = {question.namespace for question in loaded.questions}
    oldest = (now or datetime.now(UTC)) - _DAY
    others: list[str] = []
    for pointer in islice(read_pointers(store), _MOST_POINTERS):
        if isinstance(pointer, PublishedPointer):
            if others and pointer.when < oldest:
                break
            others.append(pointer.generation)
            if pointer.anew:
                break
    chosen = [generation for generation in dict.fromkeys(others) if generation != before.generation]
    # If there are too many, a choice spread over the day.
    step = -(-len(chosen) // _MOST_COMPARED) or 1
    found = [_measured(before, times, named)]
    for generation in chosen[::-step]:
        with suppress(*_UNREADABLE):
            found.append(_measured(_read(store, generation), times, named))
    return tuple(found)


def _measured(one: PublishedBefore, times: Mapping[bytes, int], named: Collection[str]) -> HadBefore:
    return HadBefore(
        one.generation[:12],
        len(one.lines),
        sum(count for (namespace, _), count in one.topics.items() if namespace in named),
        sum(count for line, count in times.items() if line in one.lines),
    )


def check_questions(
    gates: PublishGates,
    before: Sequence[HadBefore],
    questions: Collection[CanonicalQuestion],
    loaded: LoadedQuestions,
    notes: Iterable[str] = (),
) -> None:
    """Raise :exc:`PublishRefused` with ``notes`` for too few ``questions`` of the ``loaded`` ones.

    They are not matched yet.
    """
    faults: list[str] = []
    if len(questions) < gates.min_questions:
        had = f", and generation {before[0].generation} has {before[0].questions:,}" if before else ""
        faults.append(
            f"{counted(len(questions), 'question', spec=',')}{had}: at least {gates.min_questions:,} (min_questions)"
        )
    if before:
        most = max(before, key=lambda one: one.questions)
        faults += _loss("question", "", len(questions), most.questions, gates.max_question_loss, most)
    if before and loaded.total_times:
        # All are measured by present questions. A question that is refused now may have been precomputed before.
        has = sum(loaded.times[question] for question in questions) / loaded.total_times
        best = max(before, key=lambda one: one.times)
        had_share = best.times / loaded.total_times
        if had_share - has > gates.max_coverage_loss + _ROUNDING:
            faults.append(
                f"{has:.1%} of what is asked is covered, and generation {best.generation} covers {had_share:.1%}: "
                f"at most {100 * gates.max_coverage_loss:g} points less (max_coverage_loss)"
            )
    _refuse(gates, before, faults, notes)


def check_topics(
    gates: PublishGates,
    before: Sequence[HadBefore],
    loaded: LoadedQuestions,
    segments: Iterable[SegmentEntry],
    notes: Iterable[str] = (),
) -> None:
    """Raise :exc:`PublishRefused` with ``notes`` for too few topics in the segments of a generation."""
    if before:
        # A namespace that nobody asks about any more may go.
        named = {question.namespace for question in loaded.questions}
        has = sum(count for segment in segments for namespace, _, count in segment.runs if namespace in named)
        best = max(before, key=lambda one: one.topics)
        where = " in the namespaces of the questions"
        _refuse(gates, before, _loss("topic", where, has, best.topics, gates.max_topic_loss, best), notes)


def _loss(what: str, where: str, has: int, had: int, most: float, before: HadBefore) -> list[str]:
    """The fault of a generation that lost more than ``most``, a share of what it ``had``."""
    if had - has <= most * had + _ROUNDING:
        return []
    # In tenths of a percent, rounded up: it reads as more than the most.
    lost = -((has - had) * 1000 // had)
    return [
        (
            f"{counted(has, what, spec=',')}{where}, and generation {before.generation} has {had:,}: a loss of "
            f"{lost / 10:.1f}%, at most {most:.1%} (max_{what}_loss)"
        )
    ]


def _refuse(
    gates: PublishGates, before: Sequence[HadBefore], faults: Sequence[str], notes: Iterable[str]
) -> None:
    if faults and not gates.allow_shrink:
        stays = "The published generation stays; " if before else ""
        refused = PublishRefused(f"not published: {'; '.join(faults)}. {stays}--allow-shrink publishes it")
        for note in notes:
            refused.add_note(note)
        raise refused
