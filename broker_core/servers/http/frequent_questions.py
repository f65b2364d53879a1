"""The namespaces that an HTTP client may list by the gates, and the frequent questions about them, as JSON lines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeVar

from broker_core.access import Access, Asker
from broker_core.compact_json import ascii_json
from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline, QuestionCount
from broker_core.plugins import RefusedByPlugin

__all__ = ["allowed_questions", "let_in", "question_lines", "question_record"]

#: Namespaces that gates are asked about at a time: half of a plugin's threads, so that clients have the others.
_AT_A_TIME: Final = 4


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


async def let_in(
    pipeline: Pipeline,
    asker: Asker,
    namespaces: Sequence[NamespaceName],
    deadline: float,
    *,
    failed: Callable[[NamespaceName, ListingFailed], object] = lambda _namespace, _failure: None,
) -> list[NamespaceName]:
    """The namespaces that all gates let the asker list, asked about a few at a time.

    A gate that fails is an error, as everywhere: raises its :exc:`~broker_core.errors.ListingFailed` after ``failed``
    was called with it. It ends the other questions: no gate is asked for an answer that is not sent.
    """
    places = asyncio.Semaphore(_AT_A_TIME)

    async def is_let_in(namespace: NamespaceName) -> bool:
        async with places:
            try:
                await pipeline.ask_gates(Access("list", namespace, None, asker), deadline)
            except RefusedByPlugin:
                return False
            except ListingFailed as failure:
                failed(namespace, failure)
                raise
            return True

    try:
        async with asyncio.TaskGroup() as group:
            checks = [group.create_task(is_let_in(namespace)) for namespace in namespaces]
    except* ListingFailed as failures:
        raise failures.exceptions[0] from None
    return [namespace for namespace, task in zip(namespaces, checks, strict=True) if task.result()]


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
