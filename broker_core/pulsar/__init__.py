"""The server of Pulsar's binary protocol: bytes in, listing requests out; answers in, bytes out."""

from __future__ import annotations

from broker_core.pulsar.server import PulsarOptions, PulsarServer

__all__ = ["PulsarOptions", "PulsarServer"]
