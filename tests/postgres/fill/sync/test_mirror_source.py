from __future__ import annotations

from broker_core.names import NamespaceName
from broker_core_postgres.fill.sync.mirror_source import Inventory, NamesOfDomain, NamespaceTopics


def test_the_size_of_a_namespace_is_that_of_its_parts() -> None:
    parts = tuple(
        NamesOfDomain(domain, names, names, [None] * len(names))
        for domain, names in (("persistent", ["a", "b"]), ("non-persistent", ["c"]))
    )
    topics = NamespaceTopics(NamespaceName("a", "b"), parts)
    assert len(topics) == 3
    assert not topics.unread
    assert not Inventory(()).failed
