"""The rules for requests of web pages by browsers: only pages of this server may ask.

A page of any site can have a browser send requests here, and one whose name an attacker lets stand for this server's
address (DNS rebinding) passes for a page of the server itself: then ``Origin`` and ``Host`` are equal, and both have
that name. Over plain http a read of such a page has neither ``Origin`` nor ``Sec-Fetch-Site``, and its script sets
``User-Agent``, so it cannot be distinguished from a program. No script sets ``Host``: so requests must be for hosts
that no stranger can name, which are addresses, ``localhost``, and the hosts of ``[http] hosts``. Reads by any other
name are answered if such a page cannot have asked: with credentials that were verified, over TLS, whose certificate the
browser compares with the name, and by the socket of the operator. docs/how-to/secure.md#browsers
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from broker_core.errors import Cause
from broker_core.redaction import quoted
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.http_access import PROVEN

__all__ = ["WebPages"]

_READS: Final = frozenset({"GET", "HEAD"})
_FETCH_SITE: Final = "Sec-Fetch-Site"
_OTHERS: Final = frozenset({"cross-site", "same-site"})
_OF_ANOTHER_SITE: Final = "a web page of another site may ask nothing here: Sec-Fetch-Site is not same-origin"
#: An IPv6 address with or without a port; Python 3.11 drops other text after the bracket.
_BRACKETS: Final = re.compile(r"\[[^\[\]]+\](:[0-9]*)?")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class WebPages:
    """The rules for requests of browsers.

    ``hosts`` are the hosts of ``[http] hosts``, in lower case. ``has_pages`` says whether the server has pages at all,
    ``may_change`` whether they may change anything; without pages, browsers only read. To a browser all pages of a
    server are one origin, so not the page decides, but the path of the request: the site at ``/`` says whether pages
    may change what the server has itself, and each site whether they may by its own routes.
    """

    def __init__(
        self, hosts: Iterable[str] = (), *, has_pages: bool = False, may_change: bool = False
    ) -> None:
        self.hosts = tuple(hosts)
        self._names = {"localhost", *self.hosts}
        self.has_pages = has_pages
        self.may_change = may_change

    def of_site(self, *, may_change: bool) -> WebPages:
        """The rules for the routes of a site."""
        return WebPages(self.hosts, has_pages=self.has_pages, may_change=may_change)

    def check(self, request: web.Request, *, changes: bool = False) -> None:
        """Refuse a request that a page may not make: the errors 403 and 421. ``changes``: the request changes
        something.

        The asker has been admitted: unverified credentials do not count.
        """
        site = request.headers.get(_FETCH_SITE, "none")
        if request.method in _READS:
            # A link of another site may be followed. What a page of it includes or fetches is no answer for it: even
            # of a frame or an object, which navigate, it hears whether there was one.
            if site in _OTHERS and not _is_followed_link(request):
                raise _denied(_OF_ANOTHER_SITE)
            if not (request.get(PROVEN) or _is_safe_from_rebinding(request)):
                self.check_host(request)
            return
        if hdrs.ORIGIN not in request.headers and site == "none":
            return  # of a program
        if not (self.may_change if changes else self.has_pages):
            raise _denied("a web page may change nothing here: the request has an Origin")
        self.check_host(request)
        if not _is_own(request):
            raise _denied(
                "a web page of another site may ask nothing here: the Origin of the request is not its Host"
            )
        if site not in ({"same-origin"} if changes else {"same-origin", "none"}):
            raise _denied(
                "a web page may change nothing by plain http from another machine: open it by https, or by localhost"
                if site == "none"
                else _OF_ANOTHER_SITE
            )

    def check_host(self, request: web.Request) -> None:
        """Refuse a request for a host that a stranger may have named: the error 421."""
        host = _host(request)
        if host is None or not (_is_address(host) or host in self._names):
            raise refused(
                421,
                "this server is asked by an address, as localhost, or by a name of [http] hosts, "
                f"and not as {quoted(host or '')}",
                Cause.NOT_ALLOWED,
            )


def _is_followed_link(request: web.Request) -> bool:
    """Whether the browser follows a link: the answer becomes the page of its tab, which no script can read."""
    headers = request.headers
    return headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"


def _is_safe_from_rebinding(request: web.Request) -> bool:
    """Whether a request came over TLS, by a unix socket, or without ``Host``, which no browser leaves out."""
    transport = request.transport
    if transport is None or hdrs.HOST not in request.headers:
        return True
    over_tls = transport.get_extra_info("ssl_object") is not None
    return over_tls or not isinstance(transport.get_extra_info("peername"), tuple)


def _host(request: web.Request) -> str | None:
    """The name in ``Host``, in small letters without port and brackets; ``None`` if it is missing, or no host."""
    given = request.headers.getall(hdrs.HOST, ())
    parts = _parts(f"http://{given[0]}") if len(given) == 1 else None
    return None if parts is None else parts[0]


def _parts(url: str) -> tuple[str, int] | None:
    """The host and the port of an origin; ``None`` of anything else."""
    try:
        found = urlsplit(url)
        port = found.port or _DEFAULT_PORTS.get(found.scheme)
    except ValueError:
        return None
    if (
        found.path
        or found.query
        or found.fragment
        or found.username is not None
        or not found.hostname
        or ("[" in found.netloc and not _BRACKETS.fullmatch(found.netloc))
        or not port
    ):
        return None
    return found.hostname, port


def _is_own(request: web.Request) -> bool:
    """Whether the asking page is of the asked host, by any scheme: TLS may end before this server."""
    given = request.headers.getall(hdrs.ORIGIN, ())
    if not given:
        return True  # Sec-Fetch-Site says the rest
    scheme = urlsplit(given[0]).scheme if len(given) == 1 and given[0].isascii() else ""
    origin = _parts(given[0]) if scheme in _DEFAULT_PORTS else None
    host = _parts(f"{scheme}://{request.headers[hdrs.HOST]}")
    return origin is not None and origin == host


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _denied(detail: str) -> RequestRefused:
    return refused(403, detail, Cause.NOT_ALLOWED)
