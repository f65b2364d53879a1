"""Names as people give them: local or full, of one namespace."""

from __future__ import annotations

import pytest

from broker_core.catalog.topic_files.local_or_full_name import shown_text, topic_in_namespace
from broker_core.errors import InvalidName
from broker_core.names import NamespaceName

NAMESPACE = NamespaceName("a", "b")


def test_a_local_or_full_name_means_a_topic() -> None:
    assert str(topic_in_namespace(NAMESPACE, "x")) == "persistent://a/b/x"
    assert str(topic_in_namespace(NAMESPACE, "non-persistent://a/b/x")) == "non-persistent://a/b/x"
    with pytest.raises(InvalidName, match="not in namespace a/b"):
        topic_in_namespace(NAMESPACE, "persistent://a/c/x")


def test_a_long_text_is_cut() -> None:
    assert shown_text("x" * 200) == repr("x" * 200)
    assert shown_text("x" * 201) == repr("x" * 200 + "…")
