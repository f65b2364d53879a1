"""Requests of each version of Kafka's topic APIs, by the codec of kafka-python, one at a time."""

from __future__ import annotations

import struct
import uuid
from typing import Any, Final

from kafka.protocol import admin, metadata

from tests.interop.kafka_clients.python.case_lines import Server
from tests.interop.kafka_raw import RawKafka

__all__ = ["CLOSED", "RawRequests"]

#: What a request "answers" where the server hangs up.
CLOSED: Final = "connection closed"

#: An answer as plain values, or :data:`CLOSED`.
Answer = Any


class RawRequests:
    """A connection, made anew after the server has closed it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection: RawKafka | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def exchange(self, content: bytes) -> bytes | None:
        """The answer (without its length) to a request (without its length), or ``None`` if the server hung up."""
        try:
            return self._open().exchange(content)
        except ConnectionError:
            self.close()
            return None

    def send(self, request_type: Any, version: int, /, **fields: object) -> Answer:
        try:
            return self._open()(request_type, version, **fields)
        except ConnectionError:
            self.close()
            return CLOSED

    def metadata(self, version: int = 13, **fields: Any) -> Answer:
        topics = fields.pop("topics", None)
        if isinstance(topics, list):
            topics = [each if isinstance(each, dict) else {"name": each} for each in topics]
        return self.send(
            metadata.MetadataRequest, version, topics=topics, **{"allow_auto_topic_creation": False} | fields
        )

    def create(self, *topics: dict[str, Any], version: int = 7, validate_only: bool = False) -> Answer:
        rows = [{"num_partitions": 1, "replication_factor": 1} | each for each in topics]
        return self.send(
            admin.CreateTopicsRequest, version, topics=rows, timeout_ms=10000, validate_only=validate_only
        )

    def delete(self, *topics: dict[str, Any], version: int = 6) -> Answer:
        key = {"topics": list(topics)} if version >= 6 else {"topic_names": [each["name"] for each in topics]}
        return self.send(admin.DeleteTopicsRequest, version, timeout_ms=10000, **key)

    def pages(self, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Answer:
        return self.send(
            admin.DescribeTopicPartitionsRequest,
            0,
            topics=[{"name": name} for name in names],
            response_partition_limit=limit,
            cursor=cursor and {"topic_name": cursor[0], "partition_index": cursor[1]},
        )

    def page_through(self, limit: int) -> list[dict[str, Any]]:
        """All pages of a listing: names with the numbers of their partitions, and cursors."""
        seen: list[dict[str, Any]] = []
        cursor: tuple[str, int] | None = None
        while True:
            page = self.pages(limit=limit, cursor=cursor)
            rows = [
                (each["name"], [row["partition_index"] for row in each["partitions"]])
                for each in page["topics"]
            ]
            last = page["next_cursor"]
            cursor = last and (last["topic_name"], last["partition_index"])
            seen.append({"topics": rows, "next": cursor})
            if cursor is None:
                return seen

    def configs(
        self, *resources: tuple[int, str, list[str] | None], version: int = 4, **fields: Any
    ) -> Answer:
        rows = [
            {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
            for kind, name, keys in resources
        ]
        return self.send(admin.DescribeConfigsRequest, version, resources=rows, **fields)

    def alter(
        self, topic: str, *operations: tuple[str, int, str | None], version: int = 1, **fields: Any
    ) -> Answer:
        rows = [{"name": name, "config_operation": kind, "value": value} for name, kind, value in operations]
        resources = [{"resource_type": 2, "resource_name": topic, "configs": rows}]
        return self.send(
            admin.IncrementalAlterConfigsRequest,
            version,
            resources=resources,
            **{"validate_only": False} | fields,
        )

    def replace_configs(
        self, topic: str, values: dict[str, str | None], version: int = 2, **fields: Any
    ) -> Answer:
        rows = [{"name": name, "value": value} for name, value in values.items()]
        resources = [{"resource_type": 2, "resource_name": topic, "configs": rows}]
        return self.send(
            admin.AlterConfigsRequest, version, resources=resources, **{"validate_only": False} | fields
        )

    def partitions(self, name: str, count: int, version: int = 3, **fields: Any) -> Answer:
        topics = [{"name": name, "count": count, "assignments": fields.pop("assignments", None)}]
        return self.send(
            admin.CreatePartitionsRequest,
            version,
            topics=topics,
            timeout_ms=10000,
            **{"validate_only": False} | fields,
        )

    def cluster(self, version: int = 2, **fields: Any) -> Answer:
        return self.send(admin.DescribeClusterRequest, version, **fields)

    def config_resources(self, *kinds: int) -> Answer:
        return self.send(admin.ListConfigResourcesRequest, 1, resource_types=list(kinds))

    def api_versions(self, version: int) -> Answer:
        return self.send(
            metadata.ApiVersionsRequest, version, client_software_name="raw", client_software_version="1"
        )

    def ids(self) -> dict[str, uuid.UUID]:
        """The ids of all topics, by name."""
        return {each["name"]: each["topic_id"] for each in self.metadata()["topics"]}

    # ----------------------------------------------------------------------------------------------- odd bytes

    def unknown_key(self) -> str:
        return self._answered(struct.pack(">hhih3s", 999, 0, 1, 3, b"raw"))

    def version_too_new(self) -> str:
        return self._answered(struct.pack(">hhih3sBBBBBB", 3, 99, 1, 3, b"raw", 0, 1, 0, 0, 0, 0))

    def api_versions_too_new(self) -> Answer:
        answer = self.exchange(struct.pack(">hhih3sB", 18, 99, 77, 3, b"raw", 0))
        if answer is None:
            return CLOSED
        return metadata.ApiVersionsResponse.decode(answer, version=0, header=True).to_dict()

    def api_versions_bad_name(self) -> str:
        """The bytes of the answer: kafka-python cannot read ApiVersions 3 with an error."""
        request = metadata.ApiVersionsRequest(client_software_name="bad name!", client_software_version="1")
        request.with_header(correlation_id=1, client_id="raw")
        answer = self.exchange(bytes(request.encode(version=3, header=True)))
        return CLOSED if answer is None else answer.hex()

    def trailing_bytes(self) -> str:
        return self._answered(_metadata_13([]) + b"\x00\x01\x02")

    def unknown_tag(self) -> str:
        body = _metadata_13([])
        assert body[-1] == 0  # no tagged fields; now there is one, 77, of 2 bytes
        return self._answered(body[:-1] + b"\x01\x4d\x02hi")

    def short_body(self) -> str:
        return self._answered(_metadata_13(None)[:-3])

    def _answered(self, content: bytes) -> str:
        return CLOSED if self.exchange(content) is None else "answered"

    def _open(self) -> RawKafka:
        if self._connection is None:
            self._connection = RawKafka(self._server.bootstrap)
        return self._connection


def _metadata_13(topics: list[object] | None) -> bytes:
    request = metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    request.with_header(correlation_id=1, client_id="raw")
    return bytes(request.encode(version=13, header=True))
