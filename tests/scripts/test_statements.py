from __future__ import annotations

from pathlib import Path

import pytest

from scripts.statements import Size, main, measured, size

_SOURCE = '''"""What it is.

In two lines.
"""
import os
from sys import path

#: A number.
ONE = 1  # the first


def both(a: int) -> int:
    """Its sum."""
    if a:
        # Often.
        a += 1
    return a + len("# no comment")
'''


def test_imports_docstrings_and_blank_lines_do_not_count() -> None:
    # The assignment, the function, the `if` and the two statements of its body and after it.
    assert size(_SOURCE) == Size(statements=5, lines=13, explained=7)
    assert size("") == Size()
    assert size("").share == 0


def test_code_that_is_generated_or_hidden_does_not_count(tmp_path: Path) -> None:
    for name in ("a.py", "b/c.py", "b/x_pb2.py", "api_tables.py", ".venv/d.py", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    assert [str(path.relative_to(tmp_path)) for path, _ in measured(tmp_path)] == ["a.py", "b/c.py"]


def test_another_tree_is_an_argument(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part, count in (("broker_core/names", 1200), ("plugins/x", 2), ("tests", 3)):
        (tmp_path / part).mkdir(parents=True)
        (tmp_path / part / "a.py").write_text("x = 1\n" * count + "# why\n" * count)
    main(["--by-package", str(tmp_path)])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["broker_core", "1,200", "50.0%"],
        ["broker_core/names", "1,200"],
        ["plugins", "2", "50.0%"],
        ["plugins/x", "2"],
        ["tests", "3", "50.0%"],
        ["tests", "3"],
    ]
