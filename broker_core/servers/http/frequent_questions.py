"""The frequent questions that an HTTP client may know, as JSON lines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from broker_core.access import Asker
from broker_core.compact_json import ascii_json
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline, QuestionCount
from broker_core.servers.http.listable_namespaces import let_in

__all__ = ["allowed_questions", "question_lines", "question_record"]


class _OfNamespace(Protocol):
    @property
    def namespace(self) -> str: ...


_Question = TypeVar("_Question", bound=_OfNamespace)


async def allowed_questions(
    pipeline: Pipeline, questions: Sequence[_Question], asker: Asker
) -> list[_Question]:
    """The questions, in their order, without questions about namespaces in which the rules do not allow ``monitor``, or
    which a gate refuses to list.

    Each namespace is asked for once. Raises :exc:`~broker_core.errors.ListingFailed` as :func:`let_in` does.
    """
    if not pipeline.has_guards:
        return list(questions)
    deadline = asyncio.get_running_loop().time() + pipeline.options.time_budget
    rules = pipeline.authorization
    monitored = [
        NamespaceName.parse(name)
        for name in dict.fromkeys(question.namespace for question in questions)
        if all(decision.allowed for decision in rules.decisions(asker, "monitor", name))
    ]
    allowed = set(map(str, await let_in(pipeline, asker, monitored, deadline)))
    return [question for question in questions if question.namespace in allowed]


def question_lines(questions: Iterable[QuestionCount]) -> Iterator[str]:
    """JSON lines, of which each is also a line of a file of patterns for a batch.

    ``namespace``, ``mode`` (``PERSISTENT``, ``NON_PERSISTENT`` or ``ALL``), ``pattern`` (``null`` without one) and
    ``properties`` are the question; ``count``, ``error``, ``seconds`` and ``last_asked`` (UTC) are its counts.
    """
    for each in questions:
        yield ascii_json(question_record(each)) + "\n"


def question_record(question: QuestionCount) -> dict[str, Any]:
    """The members of a line of :func:`question_lines`."""
    return {
        "namespace": question.namespace,
        "mode": question.mode.name,
        "pattern": question.topics_pattern,
        "properties": dict(question.properties),
        "count": question.count,
        "error": question.error,
        "seconds": round(question.seconds, 6),
        "last_asked": datetime.fromtimestamp(question.last_asked, UTC).isoformat(timespec="seconds"),
    }
