from __future__ import annotations

import uuid
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from yarl import URL

from broker_core.catalog import CatalogVersion, ListedNames, TopicRecord
from broker_core.names import NamespaceName, TopicName
from broker_core.servers.http.api.json_object import schema_of
from broker_core.servers.http.api.topic_object import ShownTopic, TopicObject, path_of
from tests.support.api_serving import ApiServed


def test_a_topic_as_an_object() -> None:
    topic = TopicRecord(
        TopicName.parse("persistent://a/b/x"),
        uuid.UUID(int=1),
        ListedNames.parse("*,0-1"),
        {"k": "v"},
        datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC),
        {"retention.ms": "5"},
        3,
    )
    shown = TopicObject.of(topic, CatalogVersion("file", 7, "stamp")).content()
    assert shown == {
        "name": "persistent://a/b/x",
        "partitions": 2,
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "properties": {"k": "v"},
        "configs": {"retention.ms": "5"},
        "replication": 3,
        "created": "2026-01-02T03:04:05.678+00:00",
        "version": "file:7.stamp",
    }
    schema = schema_of(TopicObject)
    assert list(shown) == schema["required"] == list(schema["properties"])


def test_what_is_not_known_of_a_topic_is_null() -> None:
    written, shown = schema_of(TopicObject)["properties"], schema_of(ShownTopic)["properties"]
    assert list(written) == list(shown)
    differ = {name for name in written if written[name] != shown[name]}
    assert differ == {"topic_id", "properties", "configs", "created", "version"}
    assert all(shown[name] == written[name] | {"type": [written[name]["type"], "null"]} for name in differ)


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
