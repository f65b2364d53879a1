"""Notes on a build besides its result: what it refused, ignored or left out. Each note is a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from broker_core.quantities import counted
from broker_core_spark.batch.questions.load_questions import LoadedQuestions
from broker_core_spark.batch.segments.question_totals import QuestionTotals
from broker_core_spark.format import CanonicalQuestion

__all__ = ["build_notes", "empty_property_notes"]

#: Refused patterns and ignored properties that have a line of their own.
_SHOWN: Final = 20


def build_notes(
    loaded: LoadedQuestions,
    left_out: Collection[CanonicalQuestion],
    *,
    rows_left_out: int,
    not_compared: str,
    full_because: str,
) -> tuple[str, ...]:
    """The notes on a build of ``loaded`` questions, of which it ``left_out`` those of unknown namespaces.

    The others are the values of :class:`~broker_core_spark.batch.build_result.BuildResult`.
    """
    notes = [f"built in full: {full_because}"] if full_because else []
    if loaded.property_keys:  # else somebody said that none selects
        notes += [
            f"ignored: the property {key[:200]!r} of {counted(rows, 'question')} selects nothing; those that do are "
            f"{', '.join(loaded.property_keys)[:200]} (--strict refuses)"
            for key, rows in Counter(loaded.ignored).most_common(_SHOWN)
        ]
    notes += [
        f"refused: {one.namespace} {one.pattern[:200]!r}: {one.reason}" for one in loaded.refused[:_SHOWN]
    ]
    if len(loaded.refused) > _SHOWN:
        notes.append(f"refused: {counted(len(loaded.refused) - _SHOWN, 'more pattern')}")
    if not_compared:
        notes.append(f"the gates could not compare with what is published: {not_compared}")
    if rows_left_out:
        notes.append(f"left out: {counted(rows_left_out, 'row')} of the catalogue (--where)")
    if left_out:
        notes.append(
            f"left out: {counted(len(left_out), 'question')} of {min(one.namespace for one in left_out)} ...: the "
            "catalogue has no such namespace"
        )
    return tuple(notes)


def empty_property_notes(totals: QuestionTotals) -> tuple[str, ...]:
    """Notes on selecting properties by which no question finds a topic, one for each property.

    The catalogue may call it by another name, or keep properties in another column: then all answers are empty.
    """
    counts = [
        (key, count)
        for question, count in zip(totals.questions, totals.counts.tolist(), strict=True)
        for key, _ in question.selector.properties
    ]
    found = {key for key, count in counts if count}
    return tuple(
        f"empty: {counted(number, 'question')} by the property {key[:200]!r} without a topic: is it in the catalogue, "
        "written like this (in a table under the column 'properties')?"
        for key, number in Counter(key for key, _ in counts if key not in found).items()
    )
