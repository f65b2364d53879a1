from __future__ import annotations

import json
import uuid
from pathlib import Path

from broker_core.wire.kafka import LIST_TOPICS, METADATA, Fields
from tests.cli.conftest import Cli
from tests.support.files import file_with
from tests.support.ports import free_port
from tests.support.scripted_kafka import Asked, ScriptedKafka, in_a_thread, metadata_of

ID = uuid.UUID("92c7faad-4a23-4b68-94ec-39c8ac9cc796")


def node() -> ScriptedKafka:
    node = ScriptedKafka(
        {
            LIST_TOPICS: lambda asked: {
                "topics": [{"name": "orders"}]
                + [{"name": "__consumer_offsets", "internal": True}] * asked.value["list_internal"]
            }
        }
    )
    node.handlers[METADATA] = lambda _: metadata_of(node, topics=[{"name": "orders", "topic_id": ID}])
    return node


def test_names(cli: Cli) -> None:
    with in_a_thread(node()) as server:
        said = cli("kafka", "topics", "list", "--bootstrap", server.address)
        assert (said.code, said.out, said.err) == (0, "orders\n", "")
        said = cli("kafka", "topics", "list", "--bootstrap", server.address, "--internal")
        assert said.out == "orders\n__consumer_offsets\n"


def test_json_with_ids(cli: Cli) -> None:
    with in_a_thread(node()) as server:
        asked = ("kafka", "topics", "list", "--bootstrap", server.address, "--format")
        assert json.loads(cli(*asked, "json").out) == [{"name": "orders", "internal": False}]
        with_ids = json.loads(cli(*asked, "json", "--ids").out)
        assert with_ids == [{"name": "orders", "topic_id": "ksf6rUojS2iU7DnIrJzHlg", "internal": False}]
        shown = cli(*asked, "table", "--ids").out
        assert "ksf6rUojS2iU7DnIrJzHlg" in shown
        assert shown.splitlines()[3].split() == ["orders", "ksf6rUojS2iU7DnIrJzHlg", "no"]
        assert "1 topic\n" in shown


def test_ids_are_no_names(cli: Cli) -> None:
    assert (
        cli("kafka", "topics", "list", "--bootstrap", "127.0.0.1:1", "--ids").refused(2)
        == "--ids goes with --format table or json"
    )


def test_names_that_match(cli: Cli) -> None:
    names = ("orders", "orders-eu", "my-orders-eu")
    listed = {"topics": [{"name": name} for name in names]}
    with in_a_thread(ScriptedKafka({LIST_TOPICS: lambda _: listed})) as server:

        def asked(*words: str) -> str:
            return cli("kafka", "topics", "list", *words, "--bootstrap", server.address).out

        assert asked("orders.*") == "orders\norders-eu\n"
        assert asked("a/b/orders") == ""
        assert asked(".*-eu") == "orders-eu\nmy-orders-eu\n"
        assert [each["name"] for each in json.loads(asked("orders", "--format", "json"))] == ["orders"]
        assert asked("order") == ""
        assert "0 topics" in asked("order", "--format", "table")


def test_what_is_no_pattern_asks_nobody(cli: Cli) -> None:
    for pattern in ("(", "(?!x).*"):
        said = cli("kafka", "topics", "list", pattern, "--bootstrap", f"127.0.0.1:{free_port()}").refused(2)
        assert pattern in said


def test_nobody_there_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    port = free_port()
    said = cli("kafka", "topics", "list", "--bootstrap", f"127.0.0.1:{port}")
    assert "; --bootstrap takes the address of the Kafka listener" in said.only_error
    config = file_with(tmp_path / "kafka.toml", f'[kafka]\nlisten = "127.0.0.1:{port}"\n')
    said = cli("kafka", "topics", "list", "--config", str(config))
    assert "; is the server of the settings running?" in said.only_error


def test_pages_are_printed_as_they_come(cli: Cli, tmp_path: Path) -> None:
    names = [f"orders-{number}" for number in range(5)]
    scripted = ScriptedKafka()
    rows = [{"name": name, "topic_id": ID, "partitions": [{"partition_index": 0}]} for name in names]

    def metadata(asked: Asked) -> Fields:
        limit, cursor = asked.value["response_pagination_limit"], asked.value["cursor"]
        if (limit or 0) < 0:
            return {"error_code": 42}
        if asked.value["topics"] is not None:
            return metadata_of(scripted)
        low = 0 if cursor is None else names.index(cursor["topic_name"])
        following = {"topic_name": names[low + limit]} if low + limit < len(names) else None
        return metadata_of(scripted, topics=rows[low : low + limit]) | {"next_cursor": following}

    scripted.handlers[METADATA] = metadata
    with in_a_thread(scripted) as server:
        asked = ("kafka", "topics", "list", "--bootstrap", server.address, "--page-size", "2")
        assert cli(*asked).out.split() == names
        assert cli(*asked, "orders-[13]").out.split() == ["orders-1", "orders-3"]
        assert len(json.loads(cli(*asked, "--ids", "--format", "json").out)) == 5
