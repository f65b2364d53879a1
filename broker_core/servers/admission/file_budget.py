"""The budget of a process's file descriptors: clients have most of them, and some are kept back.

A process without a free descriptor can do nothing: no health check, no scrape, no look into the catalogue, no
connection to a database. So clients leave enough for these uses.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

import structlog

__all__ = ["FileBudget", "raise_file_limit"]

_log = structlog.get_logger(__name__)

#: The most connections of the HTTP API that are kept back, and their share: an eighth of the clients' descriptors.
_API: Final = 1024
_API_SHARE: Final = 8

#: Descriptors that are kept back: a quarter for health and metrics, an eighth for clients under refusal, the rest for
#: the catalogue (two for each thread that reads it), the plugins' databases and the brokers behind.
_KEPT_BACK: Final = 128

#: The assumed limit if there is none, or one that no machine has the memory for.
_MOST: Final = 1_048_576

#: The assumed number of open descriptors if the system cannot give it.
_OPEN: Final = 32


@dataclass(frozen=True, slots=True)
class FileBudget:
    """Numbers of descriptors: ``clients`` is how many clients there may be by default, ``http`` how many connections of
    HTTP for health and metrics, ``api`` how many more for the HTTP API, ``refusals`` how many clients under refusal for
    lack of a place.

    A client whose descriptor is ``ceiling`` or above is refused, whatever the settings say: half of the kept back
    descriptors are used up.
    """

    limit: int
    clients: int
    http: int
    refusals: int
    ceiling: int
    api: int = 0

    @classmethod
    def of(cls, limit: int, opened: int, api: int | Literal["auto"] = 0) -> Self:
        """Share out ``limit`` descriptors of which ``opened`` are in use. A small limit is shared half and half.

        ``api`` is the wished number of connections of the HTTP API; they get at most half of the clients' descriptors.
        """
        free = max(limit - opened, 4)
        kept_back = min(_KEPT_BACK, free // 2)
        others = free - kept_back
        wished = min(_API, max(1, others // _API_SHARE)) if api == "auto" else api
        wished = min(wished, others // 2)
        return cls(
            limit=limit,
            clients=others - wished,
            http=max(1, kept_back // 4),
            refusals=max(1, kept_back // 8),
            ceiling=max(limit - kept_back // 2, opened + 1),
            api=wished,
        )

    @classmethod
    def of_process(cls, *, upstream: int = 0, api: int | Literal["auto"] = 0) -> Self:
        """The budget of this process, with its open descriptors of now; ``upstream`` more are kept back for the brokers
        behind it.
        """
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls._of_limit(soft, upstream, api)

    @staticmethod
    def upstream_share(most: int) -> int:
        """The number of descriptors for connections to the brokers behind: an eighth, and not more than ``most``."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return most if soft == resource.RLIM_INFINITY else max(8, min(most, soft // 8))

    @classmethod
    def of_server(cls) -> Self:
        """The budget of a server started from here: as :func:`raise_file_limit` leaves it, without raising anything."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls._of_limit(hard)

    @classmethod
    def _of_limit(cls, limit: int, upstream: int = 0, api: int | Literal["auto"] = 0) -> Self:
        usable = _MOST if limit == resource.RLIM_INFINITY else min(limit, _MOST)
        return cls.of(usable - upstream, _opened(), api)


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one: each client is one, and the usual limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            _log.warning("cannot raise the limit of open files", limit=soft, error=str(error))


def _opened() -> int:
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1  # one of them is for looking
    except OSError:
        return _OPEN
