from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_core.catalog import SqliteCatalog
from broker_core.names import NamespaceName, TopicName
from tests.support.examples import examples

SHOP = NamespaceName.parse("acme/shop")


def _with(folder: Path, *names: str) -> SqliteCatalog:
    catalog = SqliteCatalog(folder / "topics.sqlite")
    for name in names:
        catalog.create(TopicName.parse(f"persistent://acme/shop/{name}"), partitions=1)
    return catalog


def test_a_name_is_taken_by_its_topic_or_by_one_that_collides(tmp_path: Path) -> None:
    with _with(tmp_path, "a.b", "a_b.c", "a.b.c", "plain") as catalog:
        asked = ["a_b", "a.b", "a_b_c", "plain", "other", "a-b"]
        assert catalog.taken_names(SHOP, asked) == {
            "a_b": "a.b",
            "a.b": "a.b",
            "a_b_c": "a.b.c",
            "plain": "plain",
        }


def test_names_of_other_namespaces_and_domains_are_free(tmp_path: Path) -> None:
    with _with(tmp_path) as catalog:
        catalog.create(TopicName.parse("persistent://acme/other/a"), partitions=1)
        catalog.create(TopicName.parse("non-persistent://acme/shop/a"), partitions=1)
        assert catalog.taken_names(SHOP, ["a"]) == {}
        assert catalog.taken_names(NamespaceName.parse("no/such"), ["a"]) == {}


def test_a_name_of_many_marks_is_not_looked_up_in_all_spellings(tmp_path: Path) -> None:
    with _with(tmp_path, "a" + "._" * 60) as catalog:
        assert catalog.taken_names(SHOP, ["a" + "_" * 120, "b" + "_" * 120]) == {
            "a" + "_" * 120: "a" + "._" * 60
        }


@given(
    st.sets(st.text("a._", min_size=1, max_size=6), max_size=8),
    st.sets(st.text("a._", min_size=1, max_size=6), min_size=1, max_size=8),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(8))
def test_names_are_taken_as_a_look_at_all_topics_finds(
    tmp_path_factory: pytest.TempPathFactory, there: set[str], asked: set[str]
) -> None:
    with _with(tmp_path_factory.mktemp("taken"), *sorted(there)) as catalog:
        taken = catalog.taken_names(SHOP, asked)
    for name in asked:
        others = {each for each in there if each.replace(".", "_") == name.replace(".", "_")}
        expected = name if name in there else min(others, default=None)
        assert taken.get(name) == expected
