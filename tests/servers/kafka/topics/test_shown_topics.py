from __future__ import annotations

from typing import Any

from broker_core import TopicListingResult
from broker_core.access.asker import Asker
from broker_core.catalog import SqliteCatalog
from broker_core.names import Mode
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.kafka.topics.shown_topics import explain_kafka
from broker_core.settings import CatalogSettings, KafkaSettings, Settings
from tests.support.kafka_acls import acl, cluster_acl, put_acls
from tests.support.kafka_topics import NAMESPACE, create, kafka_topics
from tests.support.plugins import PluginOf


async def explained(
    catalog: SqliteCatalog, role: str | None, plugins: dict[str, object] | None = None, **kafka: Any
) -> dict[str, Any]:
    settings = Settings(catalog=CatalogSettings(path=catalog.path), kafka=KafkaSettings(**kafka))
    asker = Asker(role=role, remote_address="10.0.0.1:0", transport="explain")
    request = ListingRequest(NAMESPACE, Mode.PERSISTENT, asker=asker, deadline=float("inf"))
    async with kafka_topics(catalog, plugins) as made:
        return await explain_kafka(made.pipeline, settings, request)


async def test_without_an_authorizer_acls_hide_nothing(catalog: SqliteCatalog) -> None:
    create(catalog, "orders", 3)
    create(catalog, "a b")
    assert await explained(catalog, None) == {
        "principal": "User:ANONYMOUS",
        "host": "10.0.0.1",
        "authorizer": "off",
        "super_user": False,
        "topics": 1,
        "hidden_by_acls": 0,
        "left_out": 1,
        "acls": [],
    }


async def test_the_acls_of_the_client_and_what_they_hide(catalog: SqliteCatalog) -> None:
    for name in ("orders-eu", "orders-us", "other"):
        create(catalog, name)
    put_acls(
        catalog,
        acl("orders-", "READ", prefix=True),
        acl("orders-us", "DESCRIBE", "User:*", deny=True, host="10.0.0.1"),
        acl("*", "WRITE", "User:bob"),
        cluster_acl("ALTER"),
    )
    found = await explained(catalog, "ann", super_users=("User:root",))
    assert (found["authorizer"], found["topics"], found["hidden_by_acls"]) == ("on", 1, 2)
    assert found["acls"] == [
        "allow User:ann from *: READ on topic prefixed orders-",
        "deny User:* from 10.0.0.1: DESCRIBE on topic orders-us",
    ]
    assert (await explained(catalog, "bob"))["acls"][0] == "allow User:bob from *: WRITE on topic *"
    root = await explained(catalog, "root", super_users=("User:root",))
    assert (root["super_user"], root["topics"], root["hidden_by_acls"]) == (True, 3, 0)


async def test_a_listing_that_fails_is_told(catalog: SqliteCatalog) -> None:
    def fails() -> TopicListingResult:
        raise RuntimeError("no")

    found = await explained(catalog, "ann", {"p": PluginOf(list_topics=fails)})
    assert set(found) == {"principal", "host", "error"}
