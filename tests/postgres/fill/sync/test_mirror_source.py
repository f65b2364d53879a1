from __future__ import annotations

from broker_core.names import NamespaceName
from broker_core_postgres.fill.sync.mirror_source import Contents, Inventory, NamesOfDomain


def test_the_size_of_a_namespace_is_that_of_its_parts() -> None:
    parts = tuple(
        NamesOfDomain(domain, names, names, [None] * len(names))
        for domain, names in (("persistent", ["a", "b"]), ("non-persistent", ["c"]))
    )
    contents = Contents(NamespaceName("a", "b"), parts)
    assert len(contents) == 3
    assert not contents.unread
    assert not Inventory(()).failed
