"""Service URLs: ``pulsar://host:port``, or several hosts of one cluster as ``pulsar://host1:port1,host2:port2``.

With TLS they begin with ``pulsar+ssl://``.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.client.client_errors import InvalidServiceUrl
from broker_core.service_addresses import is_tls, service_addresses

__all__ = ["ServiceUrl"]


@dataclass(frozen=True, slots=True)
class ServiceUrl:
    """Addresses of one service, in the order in which they are tried; ``str()`` is the given URL."""

    text: str
    addresses: tuple[tuple[str, int], ...]

    @classmethod
    def parse(cls, text: str) -> ServiceUrl:
        """The addresses of a URL; :exc:`InvalidServiceUrl` says what is wrong with it."""
        try:
            return cls(text, service_addresses(text))
        except ValueError as invalid:
            raise InvalidServiceUrl(str(invalid)) from None

    @property
    def is_tls(self) -> bool:
        """Whether the service is asked by TLS."""
        return is_tls(self.text)

    def __str__(self) -> str:
        return self.text
