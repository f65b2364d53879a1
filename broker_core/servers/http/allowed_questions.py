"""The filter of shown questions: only questions about namespaces that the HTTP client may monitor and list."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from broker_core.access import Access, Asker
from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugins import RefusedByPlugin

__all__ = ["AllowedQuestions"]

#: Namespaces that gates are asked about at a time: half of a plugin's threads, so that clients have the others.
_AT_A_TIME: Final = 4


class _OfNamespace(Protocol):
    @property
    def namespace(self) -> str: ...


_Question = TypeVar("_Question", bound=_OfNamespace)


class AllowedQuestions:
    """Asks the rules and the gates of a pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def __call__(self, questions: Sequence[_Question], asker: Asker) -> list[_Question]:
        """The questions, in their order, without questions about namespaces in which the rules do not allow
        ``monitor``, or which a gate refuses to list.

        Each namespace is asked for once. A gate that fails is an error, as everywhere: raises
        :exc:`~broker_core.errors.ListingFailed`.
        """
        if not self._pipeline.has_guards:
            return list(questions)
        deadline = asyncio.get_running_loop().time() + self._pipeline.options.time_budget
        namespaces = list(dict.fromkeys(question.namespace for question in questions))
        places = asyncio.Semaphore(_AT_A_TIME)

        async def may_list(namespace: str) -> bool:
            async with places:
                return await self._may_list(namespace, asker, deadline)

        # The first failure ends the others: no gate is asked for an answer that is not sent.
        try:
            async with asyncio.TaskGroup() as group:
                checks = [group.create_task(may_list(namespace)) for namespace in namespaces]
        except* ListingFailed as failures:
            raise failures.exceptions[0] from None
        allowed = {name: task.result() for name, task in zip(namespaces, checks, strict=True)}
        return [question for question in questions if allowed[question.namespace]]

    async def _may_list(self, namespace: str, asker: Asker, deadline: float) -> bool:
        rules = self._pipeline.authorization
        if not all(decision.allowed for decision in rules.decisions(asker, "monitor", namespace)):
            return False
        try:
            await self._pipeline.ask_gates(
                Access("list", NamespaceName.parse(namespace), None, asker), deadline
            )
        except RefusedByPlugin:
            return False
        return True
