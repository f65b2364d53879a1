from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.catalog.store.load_columns import expand_listed, load_names
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.import_file import import_topics
from broker_core.names import NamespaceName
from broker_core.names.listed_names import ListedNames
from tests.support.examples import examples
from tests.support.narrowed import present

NAMESPACE = NamespaceName("a", "b")
LISTED = st.builds(
    lambda plain, indices: ListedNames(plain=plain) | ListedNames.of_indices(indices),
    st.booleans(),
    st.sets(st.integers(0, 6) | st.sampled_from([9, 10, 11, 2**31 - 1]), max_size=4),
).filter(bool)


def text(values: list[str]) -> pa.LargeStringArray:
    return pa.array(values, pa.large_string())


@given(st.lists(st.tuples(st.text(min_size=1, max_size=4), LISTED), min_size=1, max_size=8))
def test_columns_expand_as_each_topic_does(topics: list[tuple[str, ListedNames]]) -> None:
    names, topic_of = expand_listed(
        text([base for base, _ in topics]), text([str(listed) for _, listed in topics])
    )
    expected = [(name, row) for row, (base, listed) in enumerate(topics) for name in listed.names(base)]
    rows = np.arange(len(names)) if topic_of is None else topic_of
    assert list(zip(names.to_pylist(), rows.tolist(), strict=True)) == expected


def test_plain_topics_are_not_copied() -> None:
    bases = text(["a", "b"])
    names, topic_of = expand_listed(bases, text(["*", "*"]))
    assert names is bases
    assert topic_of is None


def test_each_topic_may_be_listed_in_another_way() -> None:
    count = 20_000
    names, topic_of = expand_listed(text(["x"] * count), text([str(number) for number in range(count)]))
    assert names.to_pylist() == [f"x-partition-{number}" for number in range(count)]
    assert present(topic_of).tolist() == list(range(count))


LOCAL = st.text(min_size=1, max_size=6).filter(lambda name: "/" not in name and "\0" not in name)
TOPICS = st.dictionaries(
    LOCAL,
    st.tuples(
        st.integers(0, 3),
        st.dictionaries(
            st.sampled_from(["region", "", 'a"b', "a\\b", "a.b", "é", "\n", "other"]),
            st.text(max_size=4),
            max_size=4,
        ),
    ),
    max_size=10,
)
KEYS = ("region", "", 'a"b', "a\\b", "a.b", "é", "\n")


@settings(max_examples=examples(10))
@given(TOPICS, st.sampled_from([(), KEYS]), st.sampled_from([1, 3, 1000]), st.sampled_from([0, 64]))
def test_all_names_and_properties_are_loaded(
    tmp_path_factory: pytest.TempPathFactory,
    topics: dict[str, tuple[int, dict[str, str]]],
    keys: tuple[str, ...],
    chunk: int,
    few: int,
) -> None:
    lines = [
        json.dumps({"name": f"{domain}://a/b/{name}", "partitions": partitions, "properties": properties})
        for name, (partitions, properties) in topics.items()
        for domain in ("persistent", "non-persistent")
    ]
    with (
        pytest.MonkeyPatch.context() as patch,
        SqliteCatalog(tmp_path_factory.mktemp("l") / "c.sqlite") as catalog,
    ):
        patch.setattr("broker_core.catalog.store.load_columns._BLOCK", chunk)
        patch.setattr("broker_core.catalog.store.load_columns._FEW_TEXTS", few)
        import_topics(catalog, NamespaceName("other", "space"), io.BytesIO(b"theirs"))
        import_topics(catalog, NAMESPACE, io.BytesIO("\n".join(lines).encode()))
        with catalog.topics(NAMESPACE) as (_, records):
            expected = {
                (record.name.domain, name.removeprefix(f"{record.name.domain}://a/b/")): record.properties
                for record in records
                for name in record.names
            }
        with catalog.reading() as connection:
            for code, domain in enumerate(("persistent", "non-persistent")):
                loaded = load_names(connection, 2, code, keys)
                names = loaded.names.to_pylist()
                assert sorted(names) == sorted(name for kind, name in expected if kind == domain)
                assert set(loaded.properties) == set(keys)
                for key, values in loaded.properties.items():
                    assert values.to_pylist() == [expected[domain, name].get(key) for name in names]


def test_the_longest_names_are_loaded(tmp_path: Path) -> None:
    names = ["😀" * 8191 + end for end in ("a", "b", "c")]
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        import_topics(catalog, NAMESPACE, io.BytesIO("\n".join(names).encode()))
        with catalog.reading() as connection:
            assert sorted(load_names(connection, 1, 0).names.to_pylist()) == names
