"""The addresses that a client of Kafka begins with: ``HOST:PORT``, or several with commas between."""

from __future__ import annotations

from broker_core.client.client_errors import InvalidServiceUrl
from broker_core.service_addresses import Address, service_addresses

__all__ = ["DEFAULT_PORT", "bootstrap_addresses"]

DEFAULT_PORT = 9092


def bootstrap_addresses(text: str) -> tuple[Address, ...]:
    """Hosts and ports in their order, each once. Raises :exc:`~broker_core.client.InvalidServiceUrl`."""
    try:
        if "/" in text:
            raise ValueError
        parts = ",".join(part.strip() for part in text.split(",") if part.strip())
        return tuple(dict.fromkeys(service_addresses(f"kafka://{parts}", {"kafka": DEFAULT_PORT})))
    except ValueError:
        shown = "" if "@" in text else f" {text!r}"
        of_kafka = ", those of Kafka listeners and without a scheme" if "://" in text else ""
        raise InvalidServiceUrl(
            f"Invalid bootstrap addresses{shown}: expected HOST:PORT,HOST:PORT{of_kafka}"
        ) from None
