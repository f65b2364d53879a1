from __future__ import annotations

from broker_core.kafka.configs.definitions import DEFINITIONS, PARSE_ORDER
from tests.support.kafka_config_vectors import config_vectors


def test_every_default_is_a_value_that_is_shown_as_it_is() -> None:
    assert {name: each.shown(each.default) for name, each in DEFINITIONS.items()} == {
        name: each.default for name, each in DEFINITIONS.items()
    }
    assert sorted(PARSE_ORDER) == list(DEFINITIONS)


def test_values_are_shown_as_by_kafka_however_they_were_written() -> None:
    recorded = config_vectors()["shown"]
    assert [DEFINITIONS[name].shown(written) for name, written, _ in recorded] == [
        shown for _, _, shown in recorded
    ]
