"""Keys sort as all names of a catalogue do, and names can be read from them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.listing_hash import utf16_key
from broker_core.names import DOMAINS
from broker_core_spark.batch.staging.order_keys import (
    end_of_namespace,
    first_of_namespace,
    local_names,
    name_of_key,
    namespace_ranges,
    order_key,
    segment_ids,
)
from tests.support.topics import local_names as any_local_name

LOCALS = ["a", "a-b", "é", "\ue000", "\uffff", "😀", "\x01odd", "\U0010ffff"]
NAMESPACES = ["a/b", "a/b-c", "a/b.c", "b/a"]


def test_keys_sort_by_namespace_then_domain_then_utf16_and_lead_back() -> None:
    every = [(namespace, domain, local) for namespace in NAMESPACES for domain in DOMAINS for local in LOCALS]
    keys = {
        order_key(namespace, domain, pa.array([local], pa.large_string()))[0].as_py(): (
            namespace,
            domain,
            local,
        )
        for namespace, domain, local in every
    }
    expected = sorted(every, key=lambda name: (name[0], name[1], utf16_key(name[2])))
    assert [keys[key] for key in sorted(keys)] == expected
    assert [name_of_key(key) for key in sorted(keys)] == expected
    column = pa.array(sorted(keys), pa.large_binary())
    found = [
        (namespace, domain, local)
        for namespace, domain, low, high in namespace_ranges(column)
        for local in local_names(column[low:high], namespace).to_pylist()
    ]
    assert found == expected
    for key, (namespace, _, _) in keys.items():
        assert first_of_namespace(namespace) < key < end_of_namespace(namespace)


def test_no_keys() -> None:
    none = pa.array([], pa.large_binary())
    assert list(namespace_ranges(none)) == []
    assert local_names(none, "a/b").to_pylist() == []


@given(
    st.lists(
        st.tuples(st.sampled_from(["t/n", "t/n-1", "t/m"]), st.booleans(), any_local_name()), max_size=20
    )
)
def test_keys_sort_as_all_names_do(topics: list[tuple[str, bool, str]]) -> None:
    keys = {
        topic: order_key(
            topic[0], "persistent" if topic[1] else "non-persistent", pa.array([topic[2]], pa.large_string())
        )[0].as_py()
        for topic in topics
    }
    by_key = sorted(set(topics), key=lambda topic: keys[topic])
    assert by_key == sorted(set(topics), key=lambda topic: (topic[0], topic[1], utf16_key(topic[2])))


@given(
    st.lists(st.binary(max_size=3), max_size=8, unique=True).map(sorted),
    st.lists(st.binary(max_size=3), max_size=20),
)
def test_a_key_is_in_the_segment_of_the_last_cut_that_is_not_behind_it(
    cuts: list[bytes], keys: list[bytes]
) -> None:
    found = segment_ids(cuts, pa.array(keys, pa.large_binary()))
    assert found.tolist() == [sum(cut <= key for cut in cuts) for key in keys]
