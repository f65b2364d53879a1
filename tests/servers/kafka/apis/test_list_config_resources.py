from __future__ import annotations

from broker_core import TopicListingResult
from broker_core.catalog import SqliteCatalog
from broker_core.servers.kafka.apis.list_config_resources import LIST_CONFIG_RESOURCES_ROW
from broker_core.wire.kafka import LIST_CONFIG_RESOURCES, Fields, read_response, response_frame
from tests.support.kafka_acls import AllowAll
from tests.support.kafka_calls import Nobody, call_of, services_of
from tests.support.kafka_topics import create, kafka_topics
from tests.support.plugins import PluginOf


async def ask(
    catalog: SqliteCatalog,
    version: int,
    kinds: list[int],
    authorizer: AllowAll | None = None,
    plugins: dict[str, object] | None = None,
) -> Fields:
    async with kafka_topics(catalog, plugins) as m:
        services = services_of(topics=m.topics, authorizer=authorizer or AllowAll())
        call = call_of(LIST_CONFIG_RESOURCES, version, {"resource_types": kinds}, services=services)
        answer = await LIST_CONFIG_RESOURCES_ROW.answered(call)
        frame = b"".join(response_frame(LIST_CONFIG_RESOURCES, version, 1, answer))
        return read_response(LIST_CONFIG_RESOURCES, version, frame[4:])[1]


def shown(answer: Fields) -> list[tuple[str, int]]:
    return [(row["resource_name"], row["resource_type"]) for row in answer["config_resources"]]


async def test_topics_and_the_node_by_type(catalog: SqliteCatalog) -> None:
    create(catalog, "b")
    create(catalog, "a", 3)
    assert shown(await ask(catalog, 1, [2])) == [("a", 2), ("b", 2)]
    assert shown(await ask(catalog, 1, [4])) == [("1", 4)]
    assert shown(await ask(catalog, 1, [16, 32])) == []
    assert shown(await ask(catalog, 1, [])) == [("1", 8), ("1", 4), ("a", 2), ("b", 2)]
    assert shown(await ask(catalog, 0, [])) == []


async def test_what_cannot_be_listed_is_an_error(catalog: SqliteCatalog) -> None:
    def fails() -> TopicListingResult:
        raise RuntimeError("no")

    assert (await ask(catalog, 1, [7]))["error_code"] == 35
    assert (await ask(catalog, 1, [2], Nobody()))["error_code"] == 31
    assert (await ask(catalog, 1, [2], plugins={"p": PluginOf(list_topics=fails)}))["error_code"] == -1
