"""``GET .../topics/{topic}/configs``: the configs that a topic has in effect, with the source of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from aiohttp import web
from pydantic import Field

from broker_core.kafka.configs import (
    DEFINITIONS,
    DOCUMENTATION,
    ConfigDefinition,
    ConfigSource,
    config_synonyms,
    effective_config,
    sound_configs,
)
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.namespaces.show_topic import found_topic
from broker_core.servers.http.api.operation import HttpOperation, Reply, Right
from broker_core.servers.http.api.parameters import flag_parameter
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.api.topic_object import TOPIC, TOPIC_PATH

__all__ = ["operations"]

_SOURCES: Final[Mapping[ConfigSource, Literal["topic", "settings", "default"]]] = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "topic",
    ConfigSource.STATIC_BROKER_CONFIG: "settings",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "default",
    ConfigSource.DEFAULT_CONFIG: "default",
}


class _Given(JsonObject):
    name: str
    value: str
    source: Literal["topic", "settings", "default"] = Field(
        description="Where it is from: the topic itself, `[kafka.configs]` of the server, or Kafka."
    )


class _Config(_Given):
    type: str = Field(description="As in Kafka's answers: `LONG`, `LIST` ...")
    synonyms: list[_Given] = Field(description="All sources that the value can have; the first one counts.")
    documentation: str | None = Field(
        default=None, description="Kafka's words about it, in HTML (`documentation`)."
    )


class _Configs(JsonObject):
    topic: str
    items: list[_Config] | None = Field(
        description="All configs that topics have; null if those of this topic are not known: of one that a plugin "
        "lists, or brokers."
    )


_EXAMPLE: Final = {
    "topic": "persistent://public/default/orders",
    "items": [
        {
            "name": "cleanup.policy",
            "value": "compact",
            "source": "topic",
            "type": "LIST",
            "synonyms": [
                {"name": "cleanup.policy", "value": "compact", "source": "topic"},
                {"name": "log.cleanup.policy", "value": "delete", "source": "default"},
            ],
        }
    ],
}


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operation of this module."""
    return [
        HttpOperation(
            "GET",
            f"{TOPIC_PATH}/configs",
            "showTopicConfigs",
            "The configs of Kafka that a topic has in effect, and where each is from.",
            Right.CREDENTIALS,  # the use case asks rules and gates
            _show,
            {
                200: Reply(
                    "The configs.", {"application/json": _Configs}, examples={"application/json": _EXAMPLE}
                ),
                404: Reply("There is no such topic for this client."),
            },
            description="As in DescribeConfigs; without `[kafka]` too, when no settings are inherited.",
            parameters=(
                TOPIC,
                flag_parameter(
                    "documentation",
                    "Whether each has its documentation.",
                ),
            ),
        )
    ]


async def _show(request: ApiRequest) -> web.StreamResponse:
    found = await found_topic(request)
    assert found.name is not None
    stored = found.details.get("configs")
    own = sound_configs(stored) if stored is not None else None
    if found.record is not None:
        own = dict(found.record.configs)
    kafka = request.services.settings.kafka
    broker = {} if kafka is None else kafka.configs
    items = None
    if own is not None:
        documented = request.values["documentation"]
        items = [_config(each, own, broker, documented=documented) for each in DEFINITIONS.values()]
    return _Configs(topic=str(found.name.partitioned_name), items=items).response()


def _config(
    definition: ConfigDefinition, own: Mapping[str, str], broker: Mapping[str, str], *, documented: bool
) -> _Config:
    config = effective_config(definition, own, broker)
    more: dict[str, Any] = {"documentation": DOCUMENTATION[config.name]} if documented else {}
    return _Config(
        name=config.name,
        value=definition.shown(config.value),
        source=_SOURCES[config.source],
        type=definition.kind.name,
        synonyms=[
            _Given(name=each.name, value=each.value, source=_SOURCES[each.source])
            for each in config_synonyms(definition, own, broker)
        ],
        **more,
    )
