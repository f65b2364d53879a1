"""A regex consumer of Pulsar, nothing special about it: what it finds is decided by the server that it asks.

    python regex_consumer.py SERVICE_URL PATTERN [SUBSCRIPTION]
    python regex_consumer.py pulsar://127.0.0.1:6650 'persistent://public/default/orders-.*'

Point SERVICE_URL at broker-core (`broker-core serve` with an `[upstream] service_url`): its plugins decide about the
topics, the messages come straight from the brokers. It prints `ready`, then a line with the topic and the text of each
message, until it is interrupted. The client looks for new topics every 60 seconds; its Python API cannot change that.
"""

from __future__ import annotations

import re
import sys

import pulsar


def main(service_url: str, pattern: str, subscription: str = "regex-consumer") -> None:
    """Consume from all topics that match, oldest messages first."""
    client = pulsar.Client(service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/stderr"))
    consumer = client.subscribe(
        re.compile(pattern),  # a compiled pattern, not a text, makes it a regex consumer
        subscription,
        initial_position=pulsar.InitialPosition.Earliest,
    )
    print("ready", flush=True)
    try:
        while True:
            message = consumer.receive()
            print(message.topic_name(), message.data().decode(), sep="\t", flush=True)
            consumer.acknowledge(message)
    except KeyboardInterrupt:
        pass
    finally:
        client.close()  # not unsubscribe(): the subscriptions keep their places until the next start


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
