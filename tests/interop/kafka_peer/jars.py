"""The jars of the real Kafka broker, of its Java client and of its tools, such as kafka-topics.sh."""

from __future__ import annotations

from pathlib import Path

from tests.interop.maven import jars_of

__all__ = ["HERE", "kafka_jars"]

HERE = Path(__file__).resolve().parent


def kafka_jars() -> Path:
    """The folder of the jars."""
    return jars_of(HERE / "pom.xml")
