"""docs/reference/dependencies.md has what the distribution depends on at run time."""

from __future__ import annotations

import re
import tomllib

from tests.docs.pages import ROOT, code_in, tables


def test_every_dependency_has_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split(r"[<>=!~\[; ]", dependency)[0] for dependency in project["dependencies"]}
    (table,) = tables("reference/dependencies.md")
    assert [code_in(row[0])[0] for row in table.rows] == sorted(wanted)
    assert all(row[1] and row[2] for row in table.rows)
