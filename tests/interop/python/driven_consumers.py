"""Regex consumers of the official Python client, unmodified, driven by JSON lines on standard input.

    python driven_consumers.py SERVICE_URL [TOKEN_FILE [CA_FILE]]

The orders and what is said of them are those of `java/RegexConsumers.java`, without properties. The client has a period
of discovery, and its Python API drops the argument: here it is handed on to the library.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import _pulsar
import pulsar

_saying = threading.Lock()
_period = 60


class _Configuration(_pulsar.ConsumerConfiguration):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.pattern_auto_discovery_period(_period)


_pulsar.ConsumerConfiguration = _Configuration


def _say(**event: object) -> None:
    with _saying:
        print(json.dumps(event), flush=True)


def _read(name: str, consumer: pulsar.Consumer) -> None:
    while True:
        try:
            message = consumer.receive()
        except pulsar.PulsarException:
            _say(event="closed", id=name)
            return
        _say(event="message", id=name, topic=message.topic_name(), text=message.data().decode())
        consumer.acknowledge(message)


def _subscribe(client: pulsar.Client, order: dict[str, Any]) -> None:
    global _period  # noqa: PLW0603
    _period = order["period"]
    consumer = client.subscribe(
        re.compile(order["pattern"]), order["subscription"], initial_position=pulsar.InitialPosition.Earliest
    )
    _say(event="subscribed", id=order["id"])
    threading.Thread(target=_read, args=(order["id"], consumer), daemon=True).start()


def main(service_url: str, token: str = "", ca: str = "") -> None:
    """Follow the orders until the input ends."""
    options: dict[str, Any] = {}
    if token:
        options["authentication"] = pulsar.AuthenticationToken(lambda: Path(token).read_text().strip())
    if ca:
        options.update(tls_trust_certs_file_path=ca, tls_validate_hostname=True)
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/stderr")
    client = pulsar.Client(service_url, logger=logger, **options)
    _say(event="ready")
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["do"] != "subscribe":
                raise ValueError(f"no such order: {order['do']!r}")
            _subscribe(client, order)
        except (pulsar.PulsarException, ValueError) as error:
            _say(event="failed", id=order["id"], error=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
