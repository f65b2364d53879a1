from __future__ import annotations

import pytest

from broker_core.kafka.configs import DEFINITIONS
from broker_core.servers.kafka.topics.encoded_configs import EncodedConfigs
from broker_core.wire.kafka import CREATE_TOPICS, DESCRIBE_CONFIGS, Encoded, Fields, Reader, Writer

BROKER = {"segment.ms": "5"}


def _created(configs: Encoded) -> list[Fields]:
    writer = Writer()
    CREATE_TOPICS.write_response(writer, {"topics": [{"name": "a", "configs": configs}]}, 7)
    rows: list[Fields] = CREATE_TOPICS.read_response(Reader(writer.joined()), 7)["topics"][0]["configs"]
    return rows


def _described(configs: Encoded, version: int) -> list[Fields]:
    writer = Writer()
    DESCRIBE_CONFIGS.write_response(writer, {"results": [{"configs": configs}]}, version)
    answer = DESCRIBE_CONFIGS.read_response(Reader(writer.joined()), version)
    rows: list[Fields] = answer["results"][0]["configs"]
    return rows


def test_a_create_has_all_configs_in_the_order_of_their_names() -> None:
    rows = _created(EncodedConfigs(BROKER).created({"retention.ms": " 07"}))
    assert [row["name"] for row in rows] == sorted(DEFINITIONS)
    by_name = {row["name"]: (row["value"], row["config_source"]) for row in rows}
    assert by_name["retention.ms"] == (" 07", 1)
    assert by_name["segment.ms"] == ("5", 4)
    assert by_name["flush.ms"] == (str(2**63 - 1), 5)
    assert not any(row["read_only"] or row["is_sensitive"] for row in rows)


def test_what_a_topic_sets_is_not_that_of_the_next() -> None:
    encoded = EncodedConfigs({})
    before = _created(encoded.created({}))
    _created(encoded.created({"retention.ms": "5"}))
    assert _created(encoded.created({})) == before
    assert encoded.created({}) is encoded.created({}), "it is encoded once"


@pytest.mark.parametrize("version", range(1, 5))
@pytest.mark.parametrize("synonyms", [False, True])
@pytest.mark.parametrize("documentation", [False, True])
def test_some_or_all_are_described_in_every_version(
    version: int, synonyms: bool, documentation: bool
) -> None:
    encoded = EncodedConfigs(BROKER)
    for keys in (None, {"retention.ms", "segment.ms", "no.such"}):
        configs = encoded.described(
            version, {"retention.ms": " 07"}, keys, synonyms=synonyms, documentation=documentation
        )
        rows = {row["name"]: row for row in _described(configs, version)}
        assert len(rows) == (33 if keys is None else 2)
        retention = rows["retention.ms"]
        assert (retention["value"], retention["config_source"]) == ("7", 1)
        assert bool(retention["synonyms"]) == synonyms
        assert bool(retention["documentation"]) == (documentation and version >= 3)
        assert retention["config_type"] == (5 if version >= 3 else 0)
        assert rows["segment.ms"]["config_source"] == 4
