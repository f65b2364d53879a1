"""SCRAM (RFC 5802, RFC 7677) for Kafka's SASL mechanisms: stored credentials, and both sides of the exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.kafka.scram.client_exchange import ScramClientExchange
    from broker_core.kafka.scram.credentials import (
        DECOY_USER,
        HASHES,
        ScramCredential,
        decoy_of,
        derive_credential,
    )
    from broker_core.kafka.scram.exchange import ScramExchange
    from broker_core.kafka.scram.messages import ClientFirst, ScramError

__all__ = [
    "DECOY_USER",
    "HASHES",
    "ClientFirst",
    "ScramClientExchange",
    "ScramCredential",
    "ScramError",
    "ScramExchange",
    "decoy_of",
    "derive_credential",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "ClientFirst": ".messages",
        "DECOY_USER": ".credentials",
        "HASHES": ".credentials",
        "ScramClientExchange": ".client_exchange",
        "ScramCredential": ".credentials",
        "ScramError": ".messages",
        "ScramExchange": ".exchange",
        "decoy_of": ".credentials",
        "derive_credential": ".credentials",
    },
)
