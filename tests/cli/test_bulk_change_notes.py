from __future__ import annotations

import pytest

from broker_core.cli.bulk_change_notes import say_ahead, say_no_match
from broker_core.guards import Deletions
from broker_core.names import NamespaceName


def test_a_dry_run_says_that_the_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    say_ahead(None)
    assert not capsys.readouterr().err
    say_ahead(Deletions(most=1).refusal({"a/b": (5, 2)}))
    assert capsys.readouterr().err.startswith(
        "broker-core: without --dry-run this is refused: 2 of 5 listed names"
    )


def test_a_pattern_without_topics_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    say_no_match(NamespaceName.parse("a/b"), "a/b/x")
    assert capsys.readouterr().err.startswith("broker-core: no topic of a/b matches 'a/b/x'")
