from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Cli


def shown(cli: Cli, *topic: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(cli("topics", "show", *topic, "--format", "json").out)
    return found


def test_properties_alone_change_properties(cli: Cli, tmp_path: Path) -> None:
    cli("topics", "create", "a/b", "orders", "--partitions", "3")
    (tmp_path / "p.jsonl").write_text('{"name": "orders", "properties": {"region": "eu"}}\n')
    assert "1 updated" in cli("topics", "import", "a/b", "p.jsonl").out
    assert shown(cli, "a/b")["names"] == 3
    assert shown(cli, "a/b", "orders")["properties"] == {"region": "eu"}


def test_a_pair_with_other_properties_is_refused(cli: Cli, tmp_path: Path) -> None:
    cli("topics", "create", "a/b", "x", "--property", "region=eu")
    (tmp_path / "p.jsonl").write_text('{"name": "x-partition-0", "properties": {"region": "us"}}\n')
    assert "'x' and partition 'x-partition-0'" in cli("topics", "import", "a/b", "p.jsonl").only_error
    assert (
        "x-partition-0" in cli("topics", "create", "a/b/x-partition-0", "--property", "region=us").only_error
    )
    assert shown(cli, "a/b")["names"] == 1


def test_exact(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text("".join(f"t{number}\n" for number in range(150)))
    (tmp_path / "few.txt").write_text("t0\nnew\n")
    cli("topics", "import", "a/b", "all.txt")
    dry = cli("topics", "import", "a/b", "few.txt", "--exact", "--dry-run")
    assert dry.out == (
        "would import 2 topics into a/b: 1 created, 0 updated, 1 unchanged, 149 deleted (149 names in all)\n"
    )
    assert dry.code == 0
    assert "without --dry-run this is refused: 149 of 150 listed names" in dry.err
    assert "--max-deletions 149 or --allow-mass-deletions allows it" in dry.err
    allowed = cli("topics", "import", "a/b", "few.txt", "--exact", "--dry-run", "--max-deletions", "149")
    assert (allowed.out, allowed.err) == (dry.out, "")
    (tmp_path / "none.txt").write_text("")
    none = cli("topics", "import", "a/b", "none.txt", "--exact", "--dry-run")
    assert none.code == 0
    assert "without --dry-run this is refused" in none.err
    refused = cli("topics", "import", "a/b", "few.txt", "--exact").only_error
    assert "149 of 150 listed names would be deleted, more than 100" in refused
    assert shown(cli, "a/b")["names"] == 150
    assert cli("topics", "import", "a/b", "few.txt", "--exact", "--max-deletions", "149").code == 0
    assert cli("topics", "export", "a/b").out == "new\nt0\n"
    (tmp_path / "none.txt").write_text("")
    assert "nothing was written" in cli("topics", "import", "a/b", "none.txt", "--exact").only_error
    assert cli("topics", "import", "a/b", "none.txt", "--exact", "--allow-mass-deletions").code == 0
    assert shown(cli, "a/b")["names"] == 0


def test_a_limit_needs_something_that_deletes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("t0\n")
    said = cli("topics", "import", "a/b", "few.txt", "--max-deletions", "3")
    assert (said.code, "--exact" in said.only_error) == (2, True)


def test_a_dry_run_makes_no_catalogue(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("t0\n")
    assert "There is no catalogue" in cli("topics", "import", "a/b", "few.txt", "--dry-run").only_error
    assert not list(tmp_path.glob("*.sqlite"))
