"""`/questions` shows only namespaces that the client may list, each question on a line."""

from __future__ import annotations

import json

from broker_core.access.asker import Access, Asker, Refused
from broker_core.access.authorization import Authorization
from broker_core.names import Mode
from broker_core.pipeline.reports.finished_listings import QuestionCount, QuestionCounter
from broker_core.servers.http import allowed_questions
from broker_core.servers.http.frequent_questions import question_lines
from broker_core.settings import AuthorizationSettings
from tests.support.pipelines import made
from tests.support.plugins import PluginOf

QUESTIONS = [
    QuestionCount(f"acme/{name}", Mode.PERSISTENT, None, (), 1, 0, 0.0, 0.0)
    for name in ("a", "b", "a", "c", "b")
]


async def test_without_a_gate_all_are_there() -> None:
    async with made() as m:
        assert await allowed_questions(m.pipeline, QUESTIONS, Asker()) == QUESTIONS


async def test_a_namespace_is_asked_for_once_as_whoever_asks() -> None:
    asked: list[Access] = []

    def gate(access: Access) -> Refused | None:
        asked.append(access)
        return Refused("no") if str(access.namespace) == "acme/b" else None

    async with made(plugins={"gate": PluginOf(authorize=gate)}) as m:
        found = await allowed_questions(m.pipeline, QUESTIONS, Asker("alice", transport="http"))
        assert [question.namespace for question in found] == ["acme/a", "acme/a", "acme/c"]
        assert [(access.action, str(access.namespace), access.asker.role) for access in asked] == [
            ("list", "acme/a", "alice"),
            ("list", "acme/b", "alice"),
            ("list", "acme/c", "alice"),
        ]


async def test_a_question_is_shown_to_those_who_monitor_its_namespace() -> None:
    rules = [{"roles": ["alice"], "namespaces": ["acme/a", "acme/b"], "actions": ["monitor"]}]
    settings = AuthorizationSettings.model_validate({"super_roles": ["root"], "rules": rules})

    def gate(access: Access) -> Refused | None:
        return Refused("no") if str(access.namespace) == "acme/b" else None

    async with made(plugins={"gate": PluginOf(authorize=gate)}) as m:
        m.pipeline.authorization = Authorization(settings)
        shown = {}
        for asker in (Asker("alice"), Asker("root"), Asker("bob"), Asker("root", "alice"), Asker()):
            found = await allowed_questions(m.pipeline, QUESTIONS, asker)
            shown[asker.role, asker.original_principal] = {question.namespace for question in found}
        assert shown == {
            ("alice", None): {"acme/a"},
            ("root", None): {"acme/a", "acme/c"},
            ("bob", None): set(),
            ("root", "alice"): {"acme/a"},
            (None, None): set(),
        }


def test_a_line_is_a_line_of_a_file_of_patterns() -> None:
    times = iter([0.0, 1_772_360_100.4, 2_000_000_000.0])
    counter = QuestionCounter(clock=lambda: next(times))
    for _ in range(2):
        counter.record("t/n", Mode.PERSISTENT, 't/n/\u2028\n"[\u00e4-\u00fc]', {"region": "eu"}, 0.5)
    counter.record("t/n", Mode.NON_PERSISTENT, None, {}, 0.25)
    lines = list(question_lines(counter.most_frequent()))
    assert all(line.endswith("\n") and line.count("\n") == 1 and line.isascii() for line in lines)
    assert [json.loads(line) for line in lines] == [
        {
            "namespace": "t/n",
            "mode": "PERSISTENT",
            "pattern": 't/n/\u2028\n"[\u00e4-\u00fc]',
            "properties": {"region": "eu"},
            "count": 2,
            "error": 0,
            "seconds": 1.0,
            "last_asked": "2026-03-01T10:15:00+00:00",
        },
        {
            "namespace": "t/n",
            "mode": "NON_PERSISTENT",
            "pattern": None,
            "properties": {},
            "count": 1,
            "error": 0,
            "seconds": 0.25,
            "last_asked": "2033-05-18T03:33:20+00:00",
        },
    ]
