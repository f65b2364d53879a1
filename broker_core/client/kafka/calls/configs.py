"""Describing and changing configs (DescribeConfigs, IncrementalAlterConfigs); a node describes its own configs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from broker_core.client.client_errors import ClientError
from broker_core.client.kafka.argument_checks import all_of
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.calls.answers_by_item import answered_rows, row_error
from broker_core.client.kafka.calls.nodes import at_node
from broker_core.client.kafka.configs import (
    AlterConfigOp,
    Config,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from broker_core.client.kafka.pages import Pager
from broker_core.client.kafka.results import Results
from broker_core.wire.kafka import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, Fields

__all__ = ["config_pages", "given_resources", "incremental_alter_configs"]

#: The first version with the documentation and the types of configs.
_WITH_DOCUMENTATION = 3


def given_resources(resources: Iterable[ConfigResource]) -> list[ConfigResource]:
    """The given resources, each once."""
    return list(dict.fromkeys(all_of(ConfigResource, resources, "resources")))


async def config_pages(
    pager: Pager,
    wanted: Iterable[ConfigResource],
    *,
    names: Sequence[str] | None,
    include_synonyms: bool,
    include_documentation: bool,
) -> AsyncIterator[Results[ConfigResource, Config]]:
    """The configs of resources, some resources at a time: all configs, or the ones with ``names``."""
    keys = None if names is None else list(names)
    more = {"include_synonyms": include_synonyms, "include_documentation": include_documentation}
    least = _WITH_DOCUMENTATION if include_documentation else 0
    for node_id, some in _by_node(wanted).items():
        for part in pager.parts(some):
            body = {"resources": [_resource_row(each) | {"configuration_keys": keys} for each in part]}
            async for value, paged_by in pager.answers(
                DESCRIBE_CONFIGS, body | more, at_node(node_id), cut=True, least=least
            ):
                yield Results(
                    {_resource(row): row_error(row) or _described(row) for row in value["results"]}, paged_by
                )


async def incremental_alter_configs(
    attempts: Attempts, changes: Mapping[ConfigResource, Sequence[AlterConfigOp]], *, validate_only: bool
) -> Results[ConfigResource, None]:
    """Change each resource by itself: all of its changes, or none."""
    given = {
        resource: all_of(AlterConfigOp, changes[resource], "changes of configs")
        for resource in all_of(ConfigResource, changes, "resources")
    }

    def request(some: list[ConfigResource]) -> Fields:
        rows = [
            _resource_row(each) | {"configs": [_change(change) for change in given[each]]} for each in some
        ]
        return {"resources": rows, "validate_only": validate_only}

    def read(answer: Fields, _: list[ConfigResource]) -> dict[ConfigResource, ClientError | None]:
        return {_resource(row): row_error(row) for row in answer["responses"]}

    rows: dict[ConfigResource, ClientError | None] = {}
    for node_id, some in _by_node(given).items():
        connect = at_node(node_id)
        rows |= await answered_rows(attempts, some, connect, INCREMENTAL_ALTER_CONFIGS, request, read)
    return Results({each: rows[each] for each in given})


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """The resources by the node to ask; ``None`` for resources that any node answers."""
    groups: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        groups.setdefault(resource.node_id, []).append(resource)
    return groups


def _resource_row(resource: ConfigResource) -> dict[str, Any]:
    return {"resource_type": resource.type, "resource_name": resource.name}


def _change(change: AlterConfigOp) -> dict[str, Any]:
    return {"name": change.name, "config_operation": change.operation, "value": change.value}


def _resource(row: dict[str, Any]) -> ConfigResource:
    return ConfigResource(ConfigResourceType(row["resource_type"]), row["resource_name"])


def _described(row: dict[str, Any]) -> Config:
    return Config(
        ConfigEntry(
            each["name"],
            each["value"],
            ConfigSource(each["config_source"]),
            each["read_only"],
            each["is_sensitive"],
            tuple(
                ConfigSynonym(one["name"], one["value"], ConfigSource(one["source"]))
                for one in each["synonyms"]
            ),
            ConfigType(each["config_type"]),
            each["documentation"],
        )
        for each in row["configs"]
    )
