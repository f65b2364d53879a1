from __future__ import annotations

import pytest

from broker_core_postgres.merge import Counts
from broker_core_postgres.sync.deletions import Deletions, MassDeletion


def losing(removed: int, there: int) -> dict[str, Counts]:
    return {"a/b": Counts(added=0, changed=0, removed=removed, there=there), "a/c": Counts(5, 5, 0, 0)}


@pytest.mark.parametrize(
    ("removed", "there"),
    [(0, 0), (100, 200), (10, 10), (1000, 10_000)],
    ids=["none", "hundred", "few", "tenth"],
)
def test_what_is_usual_needs_no_word(removed: int, there: int) -> None:
    Deletions().check(losing(removed, there))


@pytest.mark.parametrize(("removed", "there"), [(101, 200), (1001, 10_000)], ids=["hundred", "tenth"])
def test_more_needs_one(removed: int, there: int) -> None:
    with pytest.raises(MassDeletion, match=rf"{removed} of {there} .*--max-deletions {removed}"):
        Deletions().check(losing(removed, there))
    Deletions(mass=True).check(losing(removed, there))
    Deletions(most=removed).check(losing(removed, there))


def test_a_namespace_is_not_emptied_by_the_way() -> None:
    counts = losing(11, 11) | {"a/large": Counts(0, 0, 0, 100_000)}
    with pytest.raises(MassDeletion, match="a/b would lose all of 11 "):
        Deletions().check(counts)
    with pytest.raises(MassDeletion, match="a/b and 1 other namespaces"):
        Deletions().check(counts | {"a/d": Counts(0, 0, 12, 12)})
    Deletions(most=11).check(counts)
    Deletions(mass=True).check(counts)


def test_a_bound_of_ones_own_is_kept() -> None:
    Deletions(most=0).check(losing(0, 100))
    with pytest.raises(MassDeletion, match=r"1 of 100 .* more than 0"):
        Deletions(most=0).check(losing(1, 100))
