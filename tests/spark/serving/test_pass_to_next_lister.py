"""Reasons to pass a question to the next lister."""

from __future__ import annotations

import ast
from pathlib import Path

import broker_core_spark.serving
from broker_core_spark.serving.pass_to_next_lister import PASS_REASONS, PassToNextLister


def test_it_says_why() -> None:
    passed = PassToNextLister("gap", "t/n: the log is too short")
    assert (passed.reason, str(passed)) == ("gap", "t/n: the log is too short")


def test_every_reason_that_is_given_is_described() -> None:
    """A misspelt word would be a metric of its own."""
    given = set()
    for source in Path(broker_core_spark.serving.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"PassToNextLister", "self._end"}:
                reason = node.args[0]
                if isinstance(reason, ast.Constant):
                    given.add(reason.value)
    assert given | {"no_generation"} == set(PASS_REASONS)
