"""A regex consumer of Pulsar, nothing special about it: what it finds is decided by the server that it asks.

    python regex_consumer.py SERVICE_URL PATTERN [SUBSCRIPTION] [--token-file FILE] [--ca FILE]
    python regex_consumer.py pulsar://127.0.0.1:6650 'persistent://public/default/orders-.*'

Point SERVICE_URL at broker-core (`broker-core serve` with an `[upstream] service_url`): its plugins decide about the
topics, the messages come straight from the brokers. It prints `ready`, then a line with the topic and the text of each
message, until it is interrupted. The client looks for new topics every 60 seconds; its Python API cannot change that.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pulsar


def main(service_url: str, pattern: str, subscription: str, token_file: Path | None, ca: Path | None) -> None:
    """Consume from all topics that match, oldest messages first."""
    options = {}
    if token_file is not None:
        # A function, not a text: the client asks for the token again when the old one has expired.
        options["authentication"] = pulsar.AuthenticationToken(lambda: token_file.read_text().strip())
    if ca is not None:
        options.update(tls_trust_certs_file_path=str(ca), tls_validate_hostname=True)
    client = pulsar.Client(
        service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/stderr"), **options
    )
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("service_url", metavar="SERVICE_URL")
    parser.add_argument("pattern", metavar="PATTERN")
    parser.add_argument("subscription", metavar="SUBSCRIPTION", nargs="?", default="regex-consumer")
    parser.add_argument("--token-file", type=Path, help="a file with the token of the consumer")
    parser.add_argument(
        "--ca", type=Path, help="the authority of the servers' certificates, for pulsar+ssl://"
    )
    main(**vars(parser.parse_args()))
