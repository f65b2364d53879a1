"""Gates before publishing: a generation that lost too much against the one before is not published.

The usual causes are a broker that has just started and knows few questions, a wrong pattern file, and a catalogue that
is half empty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.questions.load_questions import LoadedQuestions
from broker_core_spark.errors import DamagedFile, InvalidGeneration, NoSuchGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import SegmentEntry
from broker_core_spark.settings import (
    MAX_COVERAGE_LOSS,
    MAX_QUESTION_LOSS,
    MAX_TOPIC_LOSS,
    MIN_QUESTIONS,
)
from broker_core_spark.store import Store
from broker_core_spark.store.published_pointers import PublishedPointer, read_pointers
from broker_core_spark.store.read_manifest import read_manifest

__all__ = [
    "PublishGates",
    "PublishRefused",
    "PublishedBefore",
    "check_questions",
    "check_topics",
    "published_before",
]

_OVERRIDE: Final = "--allow-shrink publishes it"
#: Less than one question, one topic or one point: shares are not exact in floats.
_ROUNDING: Final = 1e-9


class PublishRefused(BatchError):
    """A gate refuses the generation. The message has the numbers of both generations."""


@dataclass(frozen=True, slots=True)
class PublishGates:
    """What a generation must have. Losses are shares from 0 to 1, against the generation before.

    ``min_questions``: questions at least. ``max_question_loss``: of the number of questions. ``max_topic_loss``: of the
    topics in the namespaces that the questions name. ``max_coverage_loss``: of the share of what is asked that is
    precomputed, in points. ``allow_shrink`` opens all gates.
    """

    min_questions: int = MIN_QUESTIONS
    max_question_loss: float = MAX_QUESTION_LOSS
    max_topic_loss: float = MAX_TOPIC_LOSS
    max_coverage_loss: float = MAX_COVERAGE_LOSS
    allow_shrink: bool = False


@dataclass(frozen=True, slots=True)
class PublishedBefore:
    """The generation before: its canonical question lines, and the number of topics of each of its namespaces."""

    generation: str
    lines: frozenset[bytes]
    topics: Mapping[str, int]

    @property
    def short(self) -> str:
        """The first digits of its id."""
        return self.generation[:12]


def published_before(
    store: Store, not_read: Callable[[str], object] = lambda _: None
) -> PublishedBefore | None:
    """The generation that is published now, or that of the newest readable pointer.

    ``None`` without one, and for one that cannot be read any more. ``not_read`` is called with the reason why the gates
    have nothing to compare with, or an older generation.
    """
    torn: InvalidGeneration | None = None
    for pointer in read_pointers(store):
        if isinstance(pointer, PublishedPointer):
            break
        torn = torn or pointer
    else:
        if torn is not None:
            not_read(f"no pointer can be read: {torn}")
        return None
    name = f"generation {pointer.generation[:12]}"
    try:
        manifest = read_manifest(store, pointer.generation)
        data = store.get(manifest.questions.name, manifest.questions.size)
    except (InvalidGeneration, NoSuchGeneration, DamagedFile) as error:
        not_read(f"{name} cannot be read: {error.reason if isinstance(error, InvalidGeneration) else error}")
        return None
    if data is None:
        not_read(f"{name} cannot be read: {manifest.questions.name} is not in the store")
        return None
    if torn is not None:
        not_read(f"{torn}; they compared with {name}, the newest that a pointer names")
    topics: dict[str, int] = {}
    for (namespace, _), count in manifest.counts().items():
        topics[namespace] = topics.get(namespace, 0) + count
    return PublishedBefore(pointer.generation, frozenset(data.splitlines()), topics)


def check_questions(
    gates: PublishGates,
    before: PublishedBefore | None,
    questions: Collection[CanonicalQuestion],
    loaded: LoadedQuestions,
) -> None:
    """Raise :exc:`PublishRefused` for too few ``questions`` of those that were ``loaded``, before they are matched."""
    if not gates.allow_shrink:
        _refuse(_question_faults(gates, before, questions, loaded))


def check_topics(
    gates: PublishGates,
    before: PublishedBefore | None,
    loaded: LoadedQuestions,
    segments: Iterable[SegmentEntry],
) -> None:
    """Raise :exc:`PublishRefused` for too few topics in the segments of a generation."""
    if gates.allow_shrink or before is None:
        return
    # A namespace that nobody asks about any more may go.
    named = {question.namespace for question in loaded.questions}
    had = sum(count for namespace, count in before.topics.items() if namespace in named)
    has = sum(count for segment in segments for namespace, _, count in segment.runs if namespace in named)
    _refuse(_loss("topics in the namespaces of the questions", has, had, gates.max_topic_loss, before))


def _question_faults(
    gates: PublishGates,
    before: PublishedBefore | None,
    questions: Collection[CanonicalQuestion],
    loaded: LoadedQuestions,
) -> Iterator[str]:
    if len(questions) < gates.min_questions:
        had = "" if before is None else f", and generation {before.short} has {len(before.lines):,}"
        yield f"{len(questions):,} questions{had}: at least {gates.min_questions:,} (min_questions)"
    if before is None:
        return
    yield from _loss("questions", len(questions), len(before.lines), gates.max_question_loss, before)
    if loaded.times_asked:
        # Both are measured by what is asked now.
        known = {question.line for question in questions}
        has, had_share = (
            sum(times for question, times in loaded.times.items() if question.line in lines)
            / loaded.times_asked
            for lines in (known, before.lines)
        )
        if had_share - has > gates.max_coverage_loss + _ROUNDING:
            yield (
                f"{has:.1%} of what is asked is covered, and generation {before.short} covers {had_share:.1%}: "
                f"at most {100 * gates.max_coverage_loss:g} points less (max_coverage_loss)"
            )


def _loss(what: str, has: int, had: int, most: float, before: PublishedBefore) -> Iterator[str]:
    if had - has > most * had + _ROUNDING:
        name = "max_question_loss" if what == "questions" else "max_topic_loss"
        yield (
            f"{has:,} {what}, and generation {before.short} has {had:,}: a loss of {1 - has / had:.1%}, at most "
            f"{most:.1%} ({name})"
        )


def _refuse(faults: Iterator[str]) -> None:
    found = list(faults)
    if found:
        raise PublishRefused(
            f"not published: {'; '.join(found)}. The published generation stays; {_OVERRIDE}"
        )
