from __future__ import annotations

import pytest

from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.cli.options.topics import is_namespace, topic_names


def test_names_are_full_or_within_a_namespace() -> None:
    full = ["persistent://a/b/x", "non-persistent://a/b/y"]
    assert [str(name) for name in topic_names(full)] == full
    assert [str(name) for name in topic_names(["a/b", "x", full[1]])] == full
    assert [str(name) for name in topic_names(["a/b/x"])] == full[:1]
    with pytest.raises(UnusableQuestion, match="name the topic as well"):
        topic_names(["a/b"])
    with pytest.raises(UnusableQuestion, match="not in namespace a/c"):
        topic_names(["a/c", full[0]])


def test_a_namespace_is_told_from_a_topic() -> None:
    assert is_namespace("a/b")
    assert not any(map(is_namespace, ("a/b/c", "persistent://a/b/c", "a")))
