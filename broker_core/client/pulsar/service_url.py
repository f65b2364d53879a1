"""Service URLs: ``pulsar://host:port``, or several hosts of one cluster as ``pulsar://host1:port1,host2:port2``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from broker_core.client.errors import InvalidServiceUrl

__all__ = ["DEFAULT_PORT", "ServiceUrl"]

DEFAULT_PORT: Final = 6650

_ADDRESS = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[^\[\]:/?#@\s]+))(?::(?P<port>[0-9]{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class ServiceUrl:
    """Addresses of one service, in the order in which they are tried; ``str()`` is the URL as it was given."""

    text: str
    addresses: tuple[tuple[str, int], ...]

    @classmethod
    def parse(cls, text: str) -> ServiceUrl:
        """The addresses of a URL; :exc:`InvalidServiceUrl` says what is wrong with it."""
        scheme, separator, rest = text.partition("://")
        if separator and scheme == "pulsar+ssl":
            raise InvalidServiceUrl(
                f"Invalid service URL {text!r}: TLS is not supported, use pulsar://host:port"
            )
        if not separator or scheme != "pulsar":
            raise InvalidServiceUrl(f"Invalid service URL {text!r}: expected pulsar://host:port")
        return cls(text, tuple(_address(text, part) for part in rest.removesuffix("/").split(",")))

    def __str__(self) -> str:
        return self.text


def _address(text: str, part: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(part)
    if match is None:
        raise InvalidServiceUrl(f"Invalid service URL {text!r}: {part!r} is no host:port")
    port = int(match["port"] or DEFAULT_PORT)
    if not 0 < port < 65_536:
        raise InvalidServiceUrl(f"Invalid service URL {text!r}: no port {port}")
    return match["ipv6"] or match["host"], port
