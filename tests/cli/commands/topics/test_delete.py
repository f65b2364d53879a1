from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.files import file_with


@pytest.fixture
def filled(cli: Cli, tmp_path: Path) -> Path:
    lines = [f"t{number}\n" for number in range(300)]
    file = file_with(tmp_path / "names.txt", "".join(lines))
    cli("topics", "import", "a/b", file)
    cli("topics", "create", "a/b", "orders", "--partitions", "3")
    return file


def names(cli: Cli) -> int:
    return len(cli("topics", "export", "a/b", "--format", "names").out.splitlines())


def test_by_a_pattern(cli: Cli, filled: Path) -> None:
    dry = cli("topics", "delete", "a/b", "--pattern", "a/b/t1.?", "--dry-run")
    assert dry.out.splitlines()[-1] == "would delete 11 names of a/b"
    assert "would delete persistent://a/b/t19" in dry.out.splitlines()
    assert names(cli) == 303
    said = cli("topics", "delete", "a/b", "--pattern", "a/b/(t1.?|orders)")
    assert said.out == "deleted 14 names of a/b\n"
    assert names(cli) == 289
    ahead = cli("topics", "delete", "a/b", "--pattern", "a/b/t.*", "--dry-run")
    assert ahead.code == 0
    assert ahead.err.startswith("broker-core: without --dry-run this is refused: 289 of 289 listed names")
    assert (
        cli("topics", "delete", "a/b", "--pattern", "a/b/t.*", "--dry-run", "--max-deletions", "289").err
        == ""
    )
    refused = cli("topics", "delete", "a/b", "--pattern", "a/b/t.*").only_error
    assert "289 of 289 listed names would be deleted" in refused
    assert names(cli) == 289
    assert cli("topics", "delete", "a/b", "--pattern", ".*", "--allow-mass-deletions").code == 0
    assert names(cli) == 0


def test_by_a_file(cli: Cli, filled: Path, tmp_path: Path) -> None:
    assert "300 of 303" in cli("topics", "delete", "a/b", "--file", filled).only_error
    some = file_with(tmp_path / "some.txt", "t5\norders-partition-1\n")
    assert cli("topics", "delete", "a/b", "--file", some, "--dry-run").out.splitlines() == [
        "would delete persistent://a/b/t5",
        "would delete persistent://a/b/orders-partition-1",
        "would delete 2 names of a/b",
    ]
    assert cli("topics", "delete", "a/b", "--file", some).out == "deleted 2 names of a/b\n"
    assert (
        "no topic persistent://a/b/t5 in the catalogue"
        in cli("topics", "delete", "a/b", "--file", some).only_error
    )
    wrong = file_with(tmp_path / "wrong.txt", "t6\npersistent://c/d/x\n")
    assert cli("topics", "delete", "a/b", "--file", wrong).only_error.startswith(f"{wrong}: line 2: ")
    assert names(cli) == 301


def test_by_name(cli: Cli, filled: Path) -> None:
    assert cli("topics", "delete", "a/b", "t1", "--dry-run").out == "would delete persistent://a/b/t1\n"
    assert (
        "no topic persistent://a/b/absent"
        in cli("topics", "delete", "a/b", "t1", "absent", "--dry-run").only_error
    )
    assert names(cli) == 303
    assert cli("topics", "delete", "a/b", "t1").out == "deleted persistent://a/b/t1\n"
    assert names(cli) == 302


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["a/b", "--pattern", "x", "--file", "y"], "which one counts"),
        (["a/b", "t1", "--pattern", "x"], "of one namespace"),
        (["persistent://a/b/t1", "--file", "y"], "of one namespace"),
        (["a/b", "t1", "--allow-mass-deletions"], "the limits are for --file and --pattern"),
        (["a/b", "--pattern", "("], "Invalid topics pattern"),
    ],
)
def test_what_does_not_fit_together(cli: Cli, filled: Path, arguments: list[str], reason: str) -> None:
    assert reason in cli("topics", "delete", *arguments).refused(2)


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_pattern_without_its_namespace_is_refused(cli: Cli, filled: Path, more: list[str]) -> None:
    said = cli("topics", "delete", "a/b", "--pattern", "t.*", *more)
    assert (said.code, "can match no topic of a/b" in said.only_error) == (1, True)


def test_what_re2_does_not_run_deletes_nothing(cli: Cli, filled: Path) -> None:
    assert "Unsupported topics pattern" in cli("topics", "delete", "a/b", "--pattern", "(?!t).*").only_error
    assert names(cli) == 303
