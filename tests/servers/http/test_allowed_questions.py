"""`/questions` shows only namespaces that the client may list."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from broker_core.access.access import Access, Refused
from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.metrics.frequent_questions import QuestionCount
from broker_core.names import Mode
from broker_core.servers.http import AllowedQuestions
from tests.support.pipelines import made
from tests.support.plugins import PluginOf

QUESTIONS = [
    QuestionCount(f"acme/{name}", Mode.PERSISTENT, None, (), 1, 0, 0.0) for name in ("a", "b", "a", "c", "b")
]


async def test_without_a_gate_all_are_there() -> None:
    async with made() as m:
        assert await AllowedQuestions(m.pipeline)(QUESTIONS, Asker()) == QUESTIONS


async def test_a_namespace_is_asked_for_once_as_whoever_asks() -> None:
    asked: list[Access] = []

    def gate(access: Access) -> Refused | None:
        asked.append(access)
        return Refused("no") if str(access.namespace) == "acme/b" else None

    def identify(asker: Asker) -> Asker:
        return replace(asker, role="alice")

    async with made(plugins={"gate": PluginOf(authorize=gate)}) as m:
        found = await AllowedQuestions(m.pipeline, identify)(QUESTIONS, Asker(transport="http"))
        assert [question.namespace for question in found] == ["acme/a", "acme/a", "acme/c"]
        assert [(access.action, str(access.namespace), access.asker.role) for access in asked] == [
            ("list", "acme/a", "alice"),
            ("list", "acme/b", "alice"),
            ("list", "acme/c", "alice"),
        ]


async def test_namespaces_do_not_wait_for_one_another() -> None:
    """Four are asked about at a time: each gate here answers only when three others are asked too."""
    together = asyncio.Barrier(4)

    async def gate() -> None:
        await together.wait()

    questions = [
        QuestionCount(f"acme/{number}", Mode.PERSISTENT, None, (), 1, 0, 0.0) for number in range(12)
    ]
    async with made(plugins={"gate": PluginOf(authorize=gate)}) as m:
        assert await AllowedQuestions(m.pipeline)(questions, Asker()) == questions


async def test_a_gate_that_fails_is_an_error() -> None:
    def gate() -> None:
        raise OSError

    async with made(plugins={"gate": PluginOf(authorize=gate)}) as m:
        with pytest.raises(ListingFailed) as caught:
            await AllowedQuestions(m.pipeline)(QUESTIONS, Asker())
        assert caught.value.cause is Cause.DENIED
