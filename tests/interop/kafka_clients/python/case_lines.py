"""Cases of a client: each one's name and result as a line of JSON, without what differs from run to run."""

from __future__ import annotations

import json
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "CONFIGS",
    "NO_SUCH_ID",
    "Cases",
    "Server",
    "normal",
    "plain",
    "results",
    "say",
    "server_of_arguments",
]

#: Configs of the topics `...-orders`.
CONFIGS: Final = {"retention.ms": "3600000", "cleanup.policy": "compact"}
NO_SUCH_ID: Final = uuid.UUID("12345678-9abc-4def-8123-456789abcdef")
#: Kafka acknowledges a change before its own listings show it: a real broker is given this time.
_CHANGES: Final = ("create", "delete", "alter", "partitions", "recreate")
_BASE64_ID: Final = re.compile(r"\b[A-Za-z0-9_-]{22}\b")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
_HEX_ID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")

#: Names, and what is done.
Cases = Iterator[tuple[str, Callable[[], object]]]


@dataclass(frozen=True)
class Server:
    """An address and credentials; without a ``mechanism`` nobody, without ``ca`` no TLS."""

    bootstrap: str
    mechanism: str | None = None
    user: str | None = None
    password: str | None = None
    ca: str | None = None
    #: Seconds to wait after a change.
    settle: float = 0.0
    #: Whether to produce and to consume, instead of what an administrator does.
    data: bool = False

    @property
    def protocol(self) -> str:
        """The security protocol, by Kafka's name."""
        return ("SASL_" if self.mechanism else "") + ("SSL" if self.ca else "PLAINTEXT")

    @property
    def login(self) -> dict[str, Any]:
        """The address and the credentials as options of kafka-python and aiokafka."""
        found: dict[str, Any] = {"bootstrap_servers": self.bootstrap, "security_protocol": self.protocol}
        if self.mechanism:
            found |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        return found

    @property
    def kafka_python(self) -> dict[str, Any]:
        """All options of kafka-python."""
        return self.login | ({"ssl_cafile": self.ca} if self.ca else {})

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)


def server_of_arguments() -> Server:
    """From the JSON of the only argument."""
    return Server(**json.loads(sys.argv[1]))


def results(cases: Cases) -> Iterator[tuple[str, dict[str, Any]]]:
    """Do one case after the other: its name, its ``result`` and the ``seconds`` that it took."""
    for case, run in cases:
        started = time.monotonic()
        try:
            result = normal(run())
        except Exception as error:  # noqa: BLE001 - whatever a client raises is its answer
            result = normal({"raised": type(error).__name__, "message": str(error)})
        yield case, {"result": result, "seconds": round(time.monotonic() - started, 3)}


def say(server: Server, cases: Cases) -> None:
    """Do all cases, and print a line for each."""
    for case, row in results(cases):
        print(json.dumps({"case": case, **row}), flush=True)
        if case.startswith(_CHANGES):
            time.sleep(server.settle)


def plain(value: Any) -> Any:
    """The values of an answer of kafka-python 2 or aiokafka."""
    if hasattr(value, "to_object"):
        return plain(value.to_object())
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def normal(value: Any, key: str = "") -> Any:
    """Plain values; ids are ``<id>`` (but null and zero ones), the cluster is ``<cluster>``, ports are ``<port>``."""
    if hasattr(value, "to_dict"):  # an answer of kafka-python
        value = value.to_dict()
    if isinstance(value, dict):
        return {str(k): normal(v, str(k)) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(normal(v, key) for v in value)
    if isinstance(value, list | tuple):
        return [normal(v, key) for v in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, uuid.UUID):
        return "<id>"
    if key in ("finalized_features_epoch", "port"):
        return f"<{key}>"
    if isinstance(value, str):
        if key == "cluster_id":
            return "<cluster>"
        if key == "topic_id":
            return value if value == "AAAAAAAAAAAAAAAAAAAAAA" else "<id>"
        if key == "raised":
            return value
        value = _ADDRESS.sub("", _HEX_ID.sub("<id>", value))
        return _BASE64_ID.sub(lambda m: "<id>" if re.search("[0-9A-Z]", m[0]) else m[0], value)
    return value
