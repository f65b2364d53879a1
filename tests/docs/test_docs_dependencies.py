"""docs/reference/dependencies.md has the run-time dependencies of the distributions."""

from __future__ import annotations

import re
import tomllib

from tests.docs.pages import ROOT, code_in, tables


def dependencies(folder: str) -> set[str]:
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[<>=!~\[; ]", dependency)[0] for dependency in project["dependencies"]}


def test_every_dependency_has_a_reason() -> None:
    table, *_ = tables("reference/dependencies.md")
    assert [code_in(row[0])[0] for row in table.rows] == sorted(dependencies("."))
    assert all(row[1] and row[2] for row in table.rows)


def test_what_a_plugin_takes_besides_has_a_reason() -> None:
    _, table, *_ = tables("reference/dependencies.md")
    shown = {(code_in(row[0])[0], code_in(row[1])[0]) for row in table.rows}
    of_core = dependencies(".") | {"broker-core"}
    assert shown == {
        (library, plugin)
        for plugin in ("explorer", "postgres", "spark")
        for library in dependencies(f"plugins/{plugin}") - of_core
    }
    assert all(row[2] and row[3] for row in table.rows)
