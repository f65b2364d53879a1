"""Consumers of Pulsar messages by a topics pattern and consumer properties, on the official client.

It needs the official client: ``pip install 'pulsar-client>=3.13'``.
"""

from __future__ import annotations

try:
    from pulsar.asyncio import Consumer as _Consumer  # noqa: F401
except ImportError as _missing:
    raise ImportError(
        "broker_core.consumer needs the official client, pulsar-client 3.13 or later: "
        "pip install 'pulsar-client>=3.13'"
    ) from _missing

from broker_core.consumer.blocking_regex_consumer import BlockingRegexConsumer
from broker_core.consumer.regex_consumer import ConsumerClosed, RegexConsumer

__all__ = ["BlockingRegexConsumer", "ConsumerClosed", "RegexConsumer"]
