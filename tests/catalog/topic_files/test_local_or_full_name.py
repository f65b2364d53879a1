"""Names as people give them: local or full, of one namespace."""

from __future__ import annotations

import pytest

from broker_core.catalog.topic_files.odd_names import topic_in_namespace
from broker_core.errors import InvalidName
from broker_core.names import NamespaceName

NAMESPACE = NamespaceName("a", "b")


def test_a_local_or_full_name_means_a_topic() -> None:
    assert str(topic_in_namespace(NAMESPACE, "x")) == "persistent://a/b/x"
    assert str(topic_in_namespace(NAMESPACE, "non-persistent://a/b/x")) == "non-persistent://a/b/x"
    with pytest.raises(InvalidName, match="not in namespace a/b"):
        topic_in_namespace(NAMESPACE, "persistent://a/c/x")


@pytest.mark.parametrize(("length", "shown"), [(200, "/" * 200), (201, "/" * 200 + "…")])
def test_a_long_text_is_cut(length: int, shown: str) -> None:
    with pytest.raises(InvalidName) as raised:
        topic_in_namespace(NAMESPACE, "/" * length)
    assert str(raised.value).startswith(f"Invalid topic name {shown!r}: ")
