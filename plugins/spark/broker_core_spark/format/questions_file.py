"""The questions file of a generation: one canonical line a question, sorted, none twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from broker_core.quantities import counted
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import Manifest

__all__ = ["question_lines", "read_questions"]


def question_lines(questions: Iterable[CanonicalQuestion]) -> tuple[bytes, int]:
    """(the questions file, the number of questions)."""
    lines = sorted({question.line for question in questions})
    return b"".join(line + b"\n" for line in lines), len(lines)


def read_questions(data: Any, manifest: Manifest) -> list[CanonicalQuestion]:
    """The questions, in order.

    Raises :exc:`InvalidGeneration` for a file that is not in order or does not fit its manifest.
    """
    file = manifest.questions.name
    found: list[CanonicalQuestion] = []
    keys = set(manifest.property_keys)
    at, last = 0, b""
    for line in bytes(data).splitlines(keepends=True):
        text = line[:-1]
        if line[-1:] != b"\n" or text <= last:
            raise InvalidGeneration(file, "its lines are not sorted, each once")
        try:
            question = CanonicalQuestion.parse(text)
        except (ValueError, RecursionError) as error:
            raise InvalidGeneration(file, f"at byte {at}: {error!s:.200}") from None
        if question.namespace not in manifest.namespaces:
            raise InvalidGeneration(
                file, f"a question about {question.namespace!r:.100}, which has no version"
            )
        if not keys.issuperset(key for key, _ in question.selector.properties):
            raise InvalidGeneration(
                file, "a question selects by properties that the generation does not know"
            )
        found.append(question)
        at, last = at + len(line), text
    if len(found) != manifest.question_count:
        raise InvalidGeneration(
            file, f"{counted(len(found), 'question')} where {manifest.question_count} are expected"
        )
    return found
