from __future__ import annotations

from urllib.parse import unquote

import pytest

from broker_core.names import TopicName
from broker_core.servers.http.api.topic_path import path_of


@pytest.mark.parametrize(
    ("topic", "path"),
    [
        ("persistent://a/b/x", "/v1/namespaces/a/b/topics/x"),
        ("non-persistent://a/b/x", "/v1/namespaces/a/b/topics/non-persistent%3A%2F%2Fa%2Fb%2Fx"),
        ("persistent://a/b/ä ?#%", "/v1/namespaces/a/b/topics/%C3%A4%20%3F%23%25"),
    ],
)
def test_the_path_of_a_topic(topic: str, path: str) -> None:
    assert path_of(TopicName.parse(topic)) == path
    assert unquote(path).endswith(topic.removeprefix("persistent://a/b/"))
