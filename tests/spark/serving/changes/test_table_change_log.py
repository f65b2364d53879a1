"""The change log of the looks at a table: numbers of looks are its versions, each look has all names."""

from __future__ import annotations

from datetime import UTC, datetime

from broker_core.change_log import CatalogVersion, ChangeLog
from broker_core.names import NamespaceName
from broker_core_spark.serving.changes.overlay import states_after
from broker_core_spark.serving.changes.table_change_log import TableChangeLog
from broker_core_spark.store.table_changes_file import TableChanges


async def test_it_has_the_changes_of_each_namespace() -> None:
    names = {
        ("a/b", "persistent", "t-partition-3"): {"k": "v"},
        ("a/b", "persistent", "gone"): None,
        ("a/c", "non-persistent", "x"): {},
    }
    log = TableChangeLog("static", TableChanges("ab" * 32, 7, datetime.now(UTC), names))
    assert isinstance(log, ChangeLog)
    place = NamespaceName.parse("a/b")
    assert await log.catalog_id() == "static"
    assert log.version_now(place) == await log.version(place) == CatalogVersion("static", 7)
    found = await log.changes(place, CatalogVersion("static", 0))
    assert found.version == CatalogVersion("static", 7)
    states = states_after(list(found), ["k"], 10)
    assert {
        name: (state.listed, dict(state.properties), state.version) for name, state in states.items()
    } == {
        "persistent://a/b/t-partition-3": (True, {"k": "v"}, 7),
        "persistent://a/b/gone": (False, {}, 7),
    }
    assert list(await log.changes(NamespaceName.parse("a/d"), CatalogVersion("static", 0))) == []
