from __future__ import annotations

import pytest

from broker_core.guards import Deletions, Loss, MassDeletion

HINT = "--dry-run shows them"


def losing(removed: int, there: int) -> dict[str, Loss]:
    return {"a/b": Loss(there, removed), "a/c": Loss(0, 0)}


@pytest.mark.parametrize(
    ("removed", "there"),
    [(0, 0), (100, 200), (10, 10), (1000, 10_000)],
    ids=["none", "hundred", "few", "tenth"],
)
def test_what_is_usual_needs_no_word(removed: int, there: int) -> None:
    Deletions().check(losing(removed, there), HINT)


@pytest.mark.parametrize(("removed", "there"), [(101, 200), (1001, 10_000)], ids=["hundred", "tenth"])
def test_more_needs_one(removed: int, there: int) -> None:
    with pytest.raises(
        MassDeletion,
        match=rf"{removed} of {there} .*; {HINT}, --max-deletions {removed} or --allow-mass-deletions",
    ):
        Deletions().check(losing(removed, there), HINT)
    Deletions(mass=True).check(losing(removed, there), HINT)
    Deletions(most=removed).check(losing(removed, there), HINT)


def test_a_namespace_is_not_emptied_by_the_way() -> None:
    losses = losing(11, 11) | {"a/large": Loss(100_000, 0)}
    with pytest.raises(MassDeletion, match=f"a/b would lose all of 11 .*{HINT}"):
        Deletions().check(losses, HINT)
    with pytest.raises(MassDeletion, match="a/b and 1 other namespace would"):
        Deletions().check(losses | {"a/d": Loss(12, 12)}, HINT)
    Deletions(most=11).check(losses, HINT)
    Deletions(mass=True).check(losses, HINT)


def test_a_bound_of_ones_own_is_kept() -> None:
    Deletions(most=0).check(losing(0, 100), HINT)
    with pytest.raises(MassDeletion, match=r"1 of 100 .* more than 0"):
        Deletions(most=0).check(losing(1, 100), HINT)


def test_the_numbers_are_told_to_programs() -> None:
    losses = {"a/b": Loss(200, 150), "a/c": Loss(100, 1)}
    with pytest.raises(MassDeletion) as refused:
        Deletions().check(losses, HINT)
    assert refused.value.refusal.loss == Loss(300, 151)
    assert refused.value.refusal.why.startswith("151 of 300 listed names would be deleted")
