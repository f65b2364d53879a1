"""The encoded configs of topics: configs that most topics do not set themselves are encoded once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from broker_core.kafka.configs import (
    DEFINITIONS,
    DOCUMENTATION,
    EffectiveConfig,
    InvalidConfig,
    broker_config_faults,
    config_synonyms,
    effective_config,
)
from broker_core.settings import KafkaSettings
from broker_core.wire.kafka import CREATE_TOPICS, DESCRIBE_CONFIGS, Encoded, Writer

__all__ = ["EncodedConfigs", "checked_configs"]

#: A config of a topic, given the ones that the topic sets.
_Encode: TypeAlias = Callable[[EffectiveConfig, Mapping[str, str]], bytes]
_FLEXIBLE_CREATE: Final = 5
_CREATED: Final = CREATE_TOPICS.response.struct_at("topics.configs")
_DESCRIBED: Final = DESCRIBE_CONFIGS.response.struct_at("results.configs")


def checked_configs(kafka: KafkaSettings) -> Mapping[str, str]:
    """The configs of ``[kafka.configs]``. Raises :exc:`~broker_core.kafka.configs.InvalidConfig`."""
    faults = broker_config_faults(kafka.configs)
    if faults:
        raise InvalidConfig(f"kafka.configs: {'; '.join(faults)}")
    return kafka.configs


class EncodedConfigs:
    """Encoded configs of topics, kept by version; ``broker`` are the defaults of the settings."""

    def __init__(self, broker: Mapping[str, str]) -> None:
        self.inherit(broker)

    def inherit(self, broker: Mapping[str, str]) -> None:
        """Use these defaults from now on."""
        self._broker = broker
        self._created = _Form(_encode_created, broker)
        #: The encodings for DescribeConfigs, by version, synonyms and documentation.
        self._described: dict[tuple[int, bool, bool], _Form] = {}

    def created(self, configs: Mapping[str, str]) -> Encoded:
        """All configs of a topic that sets ``configs``, for CreateTopics from version 5 on."""
        return self._created.encoded(configs)

    def described(
        self,
        version: int,
        configs: Mapping[str, str],
        keys: Collection[str] | None,
        *,
        synonyms: bool,
        documentation: bool,
    ) -> Encoded:
        """The configs of these names, or all, for DescribeConfigs."""
        form = self._described.get((version, synonyms, documentation))
        if form is None:
            encode = _describing(version, self._broker, synonyms=synonyms, documentation=documentation)
            form = self._described[version, synonyms, documentation] = _Form(encode, self._broker)
        return form.encoded(configs) if keys is None else form.some(configs, keys)


class _Form:
    """One way of encoding configs."""

    def __init__(self, encode: _Encode, broker: Mapping[str, str]) -> None:
        self._encode = encode
        self._broker = broker
        self._defaults = {name: self._one(name, {}) for name in DEFINITIONS}
        self._all_defaults = Encoded(len(DEFINITIONS), (b"".join(self._defaults.values()),))

    def encoded(self, configs: Mapping[str, str]) -> Encoded:
        return self.some(configs, DEFINITIONS) if configs else self._all_defaults

    def some(self, configs: Mapping[str, str], names: Collection[str]) -> Encoded:
        pieces = [
            self._one(name, configs) if name in configs else default
            for name, default in self._defaults.items()
            if name in names
        ]
        return Encoded(len(pieces), pieces)

    def _one(self, name: str, configs: Mapping[str, str]) -> bytes:
        return self._encode(effective_config(DEFINITIONS[name], configs, self._broker), configs)


def _encode_created(config: EffectiveConfig, _own: Mapping[str, str]) -> bytes:
    writer = Writer()
    value = {"name": config.name, "value": config.value, "config_source": config.source}
    _CREATED.write(writer, value, _FLEXIBLE_CREATE, flexible=True)
    return writer.joined()


def _describing(version: int, broker: Mapping[str, str], *, synonyms: bool, documentation: bool) -> _Encode:
    def encode(config: EffectiveConfig, own: Mapping[str, str]) -> bytes:
        definition = config.definition
        value: dict[str, Any] = {
            "name": config.name,
            "value": definition.shown(config.value),
            "config_source": config.source,
            "config_type": definition.kind,
        }
        if synonyms:
            value["synonyms"] = [each._asdict() for each in config_synonyms(definition, own, broker)]
        if documentation:
            value["documentation"] = DOCUMENTATION[config.name]
        writer = Writer()
        _DESCRIBED.write(writer, value, version, flexible=DESCRIBE_CONFIGS.is_flexible(version))
        return writer.joined()

    return encode
