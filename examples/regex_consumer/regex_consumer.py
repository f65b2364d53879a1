"""A consumer of all topics that match a pattern, and that the server shows to its properties.

    python regex_consumer.py SERVICE_URL PATTERN [SUBSCRIPTION] [--property KEY=VALUE ...] [--period SECONDS]
    python regex_consumer.py pulsar://127.0.0.1:6650 'persistent://public/default/orders-.*' --property team=blue

Point SERVICE_URL at broker-core (`broker-core serve` with an `[upstream] service_url`): its plugins decide about the
topics, the messages come straight from the brokers. It prints `ready`, then a line with the topic and the text of each
message, until it is interrupted.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pulsar

from broker_core.client import ClientTls, Token
from broker_core.consumer import BlockingRegexConsumer


def main(
    service_url: str,
    pattern: str,
    subscription: str,
    properties: list[str],
    period: float,
    token_file: Path | None,
    ca: Path | None,
) -> None:
    """Consume from all topics that match, oldest messages first."""
    consumer = BlockingRegexConsumer(
        service_url,
        pattern,
        subscription,
        properties=dict(each.split("=", 1) for each in properties),
        period=period,
        initial_position=pulsar.InitialPosition.Earliest,
        auth=None
        if token_file is None
        else Token(token_file),  # read again when the server asks for a new one
        tls=None if ca is None else ClientTls(ca=ca),
    )
    with consumer:  # its end closes the consumer: the subscriptions keep their places until the next start
        print("ready", flush=True)
        try:
            for message in consumer:
                print(message.topic_name(), message.data().decode(), sep="\t", flush=True)
                consumer.acknowledge(message)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("service_url", metavar="SERVICE_URL")
    parser.add_argument("pattern", metavar="PATTERN")
    parser.add_argument("subscription", metavar="SUBSCRIPTION", nargs="?", default="regex-consumer")
    parser.add_argument("--property", metavar="KEY=VALUE", action="append", default=[], dest="properties")
    parser.add_argument("--period", type=float, default=60.0, help="seconds between listings")
    parser.add_argument("--token-file", type=Path, help="a file with the token of the consumer")
    parser.add_argument(
        "--ca", type=Path, help="the authority of the servers' certificates, for pulsar+ssl://"
    )
    main(**vars(parser.parse_args()))
