from __future__ import annotations

import ast
import subprocess
from pathlib import Path
from random import Random

import pytest

from scripts.mutants import drawn, faults, files_of, main, own_tests, planted

_SOURCE = '''"""A module."""

LIMIT: "tuple[int, 3]" = 7


def small(a: int, b: int) -> bool:
    """Whether both are small."""
    if not a:
        b = max(a, b)
    return a < LIMIT and b < LIMIT
'''


def test_each_kind_of_fault_is_planted_alone() -> None:
    words = [fault.words for fault in faults(ast.parse(_SOURCE))]
    assert words == [
        "8 for 7",
        "not a: negated",
        "line 9 gone: b = max(a, b)",
        "return a < LIMIT and b < LIMIT: nothing returned",
        "a < LIMIT and b < LIMIT: Or for And",
        "max(a, b): arguments swapped",
        "a < LIMIT: LtE for Lt",
        "b < LIMIT: LtE for Lt",
    ]
    sources = [planted(_SOURCE, number) for number in range(len(words))]
    assert len(set(sources)) == len(words)
    assert all('"""Whether both are small."""' in source for source in sources)
    same = ast.unparse(ast.parse(_SOURCE)).splitlines()
    for source in sources:
        assert sum(a != b for a, b in zip(source.splitlines(), same, strict=True)) == 1


def test_a_seed_draws_the_same_faults(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(_SOURCE)
    first, again = (drawn([Path("a.py")], tmp_path, 4, Random(7)) for _ in range(2))
    assert [each[:2] for each in first] == [each[:2] for each in again]
    assert len(drawn([Path("a.py")], tmp_path, 100, Random(7))) == 8


def test_a_source_has_its_tests(root: Path) -> None:
    assert own_tests(Path("broker_core/names/topic_name.py"), root) == ["tests/names/test_topic_name.py"]
    assert own_tests(Path("plugins/postgres/broker_core_postgres/plugin.py"), root) == [
        "tests/postgres/test_plugin.py"
    ]
    assert own_tests(Path("broker_core/broker_core_none.py"), root) == []


def test_a_folder_stands_for_its_sources_with_tests(root: Path) -> None:
    alone = Path("broker_core/cli/__main__.py")
    first, *others = files_of([alone, Path("broker_core/names")], root)
    assert first == alone
    assert Path("broker_core/names/topic_name.py") in others
    assert all(own_tests(file, root) for file in others)
    assert alone not in files_of([Path("broker_core/cli")], root)


def test_a_source_without_tests_is_named(root: Path) -> None:
    with pytest.raises(SystemExit, match=r"^no tests of broker_core/cli/__main__\.py$"):
        main(["broker_core/cli/__main__.py"])


def test_what_no_test_finds_survives(tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = (
        "from scripts.small import small\n\n\ndef test_small():\n    assert small(6, 6) and not small(7, 7)\n"
    )
    # The plugin of schemathesis is imported for a second.
    options = "[pytest]\naddopts = -p no:schemathesis\n"
    files = {"scripts/small.py": _SOURCE, "tests/scripts/test_small.py": test, "pytest.ini": options}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (tmp_path / ".venv").symlink_to(root / ".venv")
    with pytest.raises(SystemExit) as ended:
        main(["--tree", str(tmp_path), "--count", "2", "--seed", "2", "scripts/small.py"])
    assert ended.value.code == 1
    *lines, last = capsys.readouterr().out.splitlines()
    fates = {line.split(": ", 1)[1]: line.split()[0] for line in lines}
    assert fates == {"8 for 7": "found", "b < LIMIT: LtE for Lt": "SURVIVES"}
    assert last == "1 of 2 faults are found (seed 2)"
