from __future__ import annotations

from urllib.parse import unquote

import pytest
from yarl import URL

from broker_core.names import NamespaceName, TopicName
from broker_core.servers.http.api.topic_object import path_of
from tests.support.api_serving import ApiServed


@pytest.mark.parametrize(
    ("topic", "path"),
    [
        ("persistent://a/b/x", "/v1/namespaces/a/b/topics/x"),
        ("non-persistent://a/b/x", "/v1/namespaces/a/b/topics/non-persistent%3A%2F%2Fa%2Fb%2Fx"),
        ("persistent://a/b/.", "/v1/namespaces/a/b/topics/persistent%3A%2F%2Fa%2Fb%2F."),
        ("persistent://a/b/..", "/v1/namespaces/a/b/topics/persistent%3A%2F%2Fa%2Fb%2F.."),
        ("persistent://a/b/ä ?#%", "/v1/namespaces/a/b/topics/%C3%A4%20%3F%23%25"),
    ],
)
def test_the_path_of_a_topic(topic: str, path: str) -> None:
    assert path_of(TopicName.parse(topic)) == path
    assert unquote(path).endswith(topic.removeprefix("persistent://a/b/"))


@pytest.mark.parametrize(
    "name", ["{b}", "a{1,2}", "}{", "{", "{topic}", "%7Bb%7D", "a b+c?d#e;f", "ä\n\t", ".", "..", "..."]
)
async def test_a_topic_of_any_name_is_found_by_its_path(served: ApiServed, name: str) -> None:
    path = URL(path_of(TopicName("persistent", NamespaceName("public", "default"), name)), encoded=True)
    url = URL(served.url).join(path)
    async with served.session.put(url, json={}) as made:
        assert made.status == 201
    async with served.session.get(url) as shown:
        assert (shown.status, (await shown.json())["name"]) == (200, f"persistent://public/default/{name}")
    async with served.session.patch(url, json={"properties": {"region": "eu"}}) as changed:
        assert changed.status == 200
    async with served.session.delete(url) as deleted:
        assert deleted.status == 204
    async with served.session.get(url) as gone:
        assert gone.status == 404
        assert "there is no topic" in (await gone.json())["detail"]


async def test_braces_in_a_namespace_are_a_wrong_name(served: ApiServed) -> None:
    for path in ("/v1/namespaces/%7Ba%7D/b", "/v1/namespaces/a/%7Bb%7D/topics"):
        said = await served.ask(path)
        assert (said.status, said.json["cause"]) == (400, "NAME")
