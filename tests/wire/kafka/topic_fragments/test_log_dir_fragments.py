from __future__ import annotations

from broker_core.wire.kafka import DESCRIBE_LOG_DIRS, Encoded, response_frame
from broker_core.wire.kafka.topic_fragments import log_dir_family
from tests.support.topic_chunks import chunk_of

TOPICS = {"a": 1, "b" * 126: 2, "c" * 127: 200}


def test_the_logs_of_a_directory() -> None:
    rows = [
        {"name": name, "partitions": [{"partition_index": index} for index in range(count)]}
        for name, count in TOPICS.items()
    ]
    for version in range(1, 6):
        family = log_dir_family(version)
        whole = Encoded(len(rows), [family.of(chunk_of(TOPICS)).data])
        part = Encoded(1, [family.layout.part(chunk_of({"a": 9}).row(0), 3, 5, None)])
        cut = {"name": "a", "partitions": [{"partition_index": 3}, {"partition_index": 4}]}
        for encoded, wanted in ((whole, rows), (part, [cut])):
            frames = [
                b"".join(
                    response_frame(
                        DESCRIBE_LOG_DIRS, version, 1, {"results": [{"log_dir": "/d", "topics": each}]}
                    )
                )
                for each in (encoded, wanted)
            ]
            assert frames[0] == frames[1]
