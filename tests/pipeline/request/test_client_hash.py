"""The client's topics hash, by the rules that the fast and the slow path share."""

from __future__ import annotations

from broker_core import Page
from broker_core.pipeline.request.client_hash import has_hash, is_unchanged, without_hash
from tests.support.pipelines import request


def test_there_is_a_hash_of_all_names_and_of_nothing_but_names() -> None:
    assert has_hash(request())
    assert not has_hash(request(page=Page(limit=1)))
    assert not has_hash(request(wants=frozenset({"partitions"})))


def test_whoever_must_not_compare_gets_no_hash() -> None:
    asked = request(topics_hash="00000000")
    assert is_unchanged(asked, "00000000")
    hidden = without_hash(asked)
    assert hidden.topics_hash is None
    assert not is_unchanged(hidden, "00000000")
    assert without_hash(hidden) is hidden
