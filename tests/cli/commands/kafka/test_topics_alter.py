from __future__ import annotations

from broker_core.wire.kafka import CREATE_PARTITIONS
from tests.cli.conftest import Cli
from tests.support.scripted_kafka import ScriptedKafka, in_a_thread


def test_more_partitions(cli: Cli) -> None:
    rows = [{"name": "a"}, {"name": "b", "error_code": 37, "error_message": "it has 6"}]
    with in_a_thread(ScriptedKafka({CREATE_PARTITIONS: lambda _: {"results": rows}})) as server:
        said = cli("kafka", "topics", "alter", "a", "b", "--partitions", "6", "--bootstrap", server.address)
        assert (said.code, said.out) == (1, "a has 6 partitions\n")
        assert said.err == "broker-core: b: INVALID_PARTITIONS: it has 6\n"
        rows[1] = {"name": "b", "error_code": 3}
        asked = ("kafka", "topics", "alter", "a", "b", "--partitions", "6", "--bootstrap", server.address)
        assert cli(*asked).code == 1
        said = cli(*asked, "--if-exists")
        assert (said.code, said.out, said.err) == (0, "a has 6 partitions\n", "")
        said = cli(
            *("kafka", "topics", "alter", "a", "--partitions", "6", "--validate-only"),
            *("--bootstrap", server.address),
        )
        assert said.out == "a would have 6 partitions\n"
        assert [each["validate_only"] for each in server.of(CREATE_PARTITIONS)] == [False, False, False, True]
