"""Learned questions from one build to the next: the lines that a build leaves, and reads again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from broker_core_spark.batch.questions.load_questions import LoadedQuestions
from broker_core_spark.batch.questions.parse_question_row import parse_json_line
from broker_core_spark.format import canonical_json
from broker_core_spark.store import Store, read_learned, write_learned

__all__ = ["MOST_LEARNED", "kept_rows", "leave_learned", "oldest_kept"]

#: The most learned questions that a build leaves for the next: the last asked ones.
MOST_LEARNED: Final = 100_000


def oldest_kept(seconds: float) -> datetime | None:
    """The oldest last time of a learned question that is kept; ``None`` without a limit (0 seconds)."""
    return datetime.now(UTC) - timedelta(seconds=seconds) if seconds > 0 else None


def kept_rows(store: Store) -> Iterator[tuple[str, object]]:
    """The rows that the last build left, each with its place."""
    path, data = read_learned(store)
    for number, line in enumerate(data.splitlines(), 1):
        place = f"{store.uri}, {path} (what the last build learned: deleted, the next one begins anew), line {number}"
        yield place, parse_json_line(place, line)


def leave_learned(store: Store, number: int, loaded: LoadedQuestions) -> None:
    """Leave the learned questions of publication ``number`` for the next build. Writes nothing if there are none."""
    now = datetime.now(UTC)  # a clock that is ahead must not keep a question for ever
    newest = sorted(
        ((min(last, now), loaded.times[question], question) for question, last in loaded.learned.items()),
        key=lambda item: (-item[0].timestamp(), -item[1], item[2].line),
    )
    lines = [
        canonical_json(
            {
                "namespace": question.namespace,
                "mode": question.mode.name,
                "pattern": question.selector.pattern,
                "properties": dict(question.selector.properties),
                "count": times,
                "last_asked": last.isoformat(timespec="seconds"),
            }
        )
        + b"\n"
        for last, times, question in newest[:MOST_LEARNED]
    ]
    if lines:
        write_learned(store, number, b"".join(lines))
