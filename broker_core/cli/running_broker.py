"""Asking the running broker, by its HTTP port: without a credential, and bounded."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import typer

from broker_core.cli.common_options import current_invocation
from broker_core.cli.option_groups import option_group
from broker_core.errors import BrokerCoreError

__all__ = ["TIMEOUT", "BrokerOption", "BrokerUnreachable", "RunningBroker", "broker_url", "get"]

#: Seconds to wait for an answer.
TIMEOUT: Final = 30.0
_MOST_ERROR_BYTES: Final = 4096
_MOST_BYTES: Final = 64 * 1024 * 1024

BrokerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--broker",
        metavar="URL",
        help="The HTTP address of the running broker. Without it http.listen of the settings.",
        show_default=False,
    ),
]


class BrokerUnreachable(BrokerCoreError):
    """The broker's HTTP port could not be asked; the message names it and says why."""


def broker_url(given: str | None) -> str:
    """The address to ask: ``given``, else that of the settings. Raises :exc:`BrokerUnreachable` without one."""
    if given is not None:
        url = given if "://" in given else f"http://{given}"
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BrokerUnreachable(f"{given!r} is no address of a broker: http://HOST:PORT")
        return url.rstrip("/")
    settings = current_invocation().load().settings.http
    if settings is None:
        raise BrokerUnreachable("no --broker, and the settings have no [http]: the broker has no HTTP port")
    if settings.listen.port == 0:
        raise BrokerUnreachable(
            "http.listen is a free port (0), so the settings do not say which: give --broker"
        )
    return f"http://{settings.listen.from_here}"


def _said(error: HTTPError) -> str:
    """The status, and what the broker says of it."""
    try:
        said = json.loads(error.read(_MOST_ERROR_BYTES))["error"]
        text = str(said).encode(errors="replace").decode()  # a lone surrogate could not be printed
    except (ValueError, TypeError, KeyError, RecursionError, OSError, http.client.HTTPException):
        return f"HTTP status {error.code}"
    return f"HTTP status {error.code}: {text[:300]}"


def get(url: str, path: str, *, timeout: float = TIMEOUT) -> str:
    """The body at a path of the broker. Raises :exc:`BrokerUnreachable`."""
    request = Request(f"{url}{path}", headers={"Accept": "*/*"})  # noqa: S310 - http or https, see broker_url
    try:
        with urlopen(request, timeout=timeout) as response:  # noqa: S310
            body: bytes = response.read(_MOST_BYTES + 1)
    except HTTPError as error:
        with error:
            raise BrokerUnreachable(f"{url}{path}: {_said(error)}") from error
    except (URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise BrokerUnreachable(f"{url}{path}: {getattr(reason, 'strerror', None) or reason}") from error
    if len(body) > _MOST_BYTES:
        raise BrokerUnreachable(f"{url}{path}: the answer is longer than {_MOST_BYTES} bytes")
    return body.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """The broker that runs with these settings, or at ``given``, the value of ``--broker``: its HTTP port.

    A command's parameter of this type stands for the option ``--broker``.
    """

    given: str | None = None

    @property
    def url(self) -> str:
        """Its address, without a slash at the end. Raises :exc:`BrokerUnreachable` where there is none to ask."""
        return broker_url(self.given)

    def get(self, path: str, *, timeout: float = TIMEOUT) -> str:
        """The body at a path such as ``/metrics``, at most 64 MiB; ``timeout`` is in seconds, for each wait.

        Raises :exc:`BrokerUnreachable`, also for a status that is no success.
        """
        return get(self.url, path, timeout=timeout)


option_group(RunningBroker, RunningBroker, given=(BrokerOption, None))
