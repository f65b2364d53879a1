"""Requests to the running broker, by its HTTP port or the operator's socket: bounded, with credentials if given."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode, urlsplit

import typer

from broker_core.cli.common_options import current_invocation
from broker_core.cli.options.credentials import NO_CREDENTIALS, GivenCredentials
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = [
    "IS_IT_RUNNING",
    "TIMEOUT",
    "BrokerUnreachable",
    "RunningBroker",
    "admin_socket",
    "broker_url",
    "get",
    "reload_page",
]

#: The hint if no server listens.
IS_IT_RUNNING: Final = "is the server running?"
#: Seconds to wait for an answer.
TIMEOUT: Final = 30.0
_MOST_ERROR_BYTES: Final = 4096
_MOST_BYTES: Final = 64 * 1024 * 1024
_UNIX: Final = "unix:"
#: The realm in a broker-core's challenge.
_REALM: Final = 'realm="broker-core"'


class BrokerUnreachable(BrokerCoreError):
    """A request to the broker failed; the message names its address and says why.

    ``wants_credentials``: it is a broker-core that only answers with credentials.
    """

    def __init__(self, message: str, *, wants_credentials: bool = False) -> None:
        super().__init__(message)
        self.wants_credentials = wants_credentials


def broker_url(given: str | None, *, tls: bool = False) -> str:
    """The broker's address: ``given``, else that of the settings. Raises :exc:`BrokerUnreachable` without one.

    With ``tls``, the settings' address with TLS is preferred to the one without.

    It begins with ``http://``, ``https://`` or, for the operator's socket, ``unix:``.
    """
    if given is not None:
        if given.startswith(_UNIX):
            return f"{_UNIX}{Path(given.removeprefix(_UNIX)).expanduser().absolute()}"
        url = given if "://" in given else f"http://{given}"
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BrokerUnreachable(f"{given!r} is no address of a broker: http://HOST:PORT, or unix:FILE")
        return url.rstrip("/")
    loaded = current_invocation().load().settings
    if loaded.admin.socket is not None:
        return admin_socket(loaded)
    settings = loaded.http
    if settings is None:
        raise BrokerUnreachable(
            "no --broker, and the settings have no [http] and no admin.socket: the broker cannot be asked"
        )
    name, scheme, listen = "http.listen", "http", settings.listen
    if settings.tls is not None and tls:
        name, scheme, listen = "http.tls.listen", "https", settings.tls.listen
    if listen.port == 0:
        raise BrokerUnreachable(f"{name} is a free port (0), so the settings do not say which: give --broker")
    return f"{scheme}://{listen.from_here}"


def admin_socket(settings: Settings) -> str:
    """The address of the operator's socket. Raises :exc:`BrokerUnreachable` if the settings have none."""
    if settings.admin.socket is None:
        raise BrokerUnreachable(
            "the settings have no admin.socket, by which the server is asked; SIGHUP reloads it too"
        )
    return f"{_UNIX}{settings.admin.socket.absolute()}"


def reload_page(config: Path | None) -> str:
    """The path of the reload page. Its query names the settings file, by ``--config`` or the environment, for the
    server to compare it with its own.
    """
    from broker_core.settings import settings_file

    file = settings_file(config)
    if file is None:
        return "/-/reload"
    query = {"file": str(file.absolute())}
    try:
        found = file.stat()
        query["inode"] = f"{found.st_dev}:{found.st_ino}"
    except OSError:  # as the server finds, too
        pass
    return f"/-/reload?{urlencode(query, errors='surrogateescape')}"


def get(
    url: str,
    path: str,
    *,
    timeout: float = TIMEOUT,
    credentials: GivenCredentials = NO_CREDENTIALS,
    method: str = "GET",
) -> str:
    """The body at a path of the broker. Raises :exc:`BrokerUnreachable`. Redirects are not followed."""
    where = url.removeprefix(_UNIX)
    # Paths at the operator's socket are internal: messages do not show them.
    place = where if url.startswith(_UNIX) else f"{url}{path.partition('?')[0]}"
    headers = {"Accept": "*/*"}
    try:
        connection, prefix = _connection(url, timeout, credentials)
        # The operator's socket needs no credentials.
        authorization = None if url.startswith(_UNIX) else credentials.of_http()
        if authorization is not None:
            headers["Authorization"] = authorization
        try:
            connection.request(method, f"{prefix}{path}", headers=headers)
            response = connection.getresponse()
            if response.status != http.client.OK:
                wanted = _REALM in (response.getheader("WWW-Authenticate") or "")
                advice = f"; {credentials.after_refusal}" if wanted else ""
                raise BrokerUnreachable(f"{place}: {_said(response)}{advice}", wants_credentials=wanted)
            body = response.read(_MOST_BYTES + 1)
        finally:
            connection.close()
    except ssl.SSLCertVerificationError as error:
        said = [error.verify_message, credentials.after_distrust(error.verify_message)]
        raise BrokerUnreachable(
            f"{place}: its certificate is not accepted: {'; '.join(filter(None, said))}"
        ) from error
    except (http.client.HTTPException, OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        if isinstance(error, ConnectionRefusedError | FileNotFoundError):
            raise BrokerUnreachable(f"cannot connect to {where}: {reason}; {IS_IT_RUNNING}") from error
        if isinstance(error, http.client.BadStatusLine):
            reason = f"{reason}; it has ended, or this is no address for HTTP: http.listen is"
        raise BrokerUnreachable(f"{place}: {reason}") from error
    if len(body) > _MOST_BYTES:
        raise BrokerUnreachable(f"{place}: the answer is longer than {_MOST_BYTES} bytes")
    return body.decode(errors="replace")


def _connection(
    url: str, timeout: float, credentials: GivenCredentials
) -> tuple[http.client.HTTPConnection, str]:
    """A connection that is not open yet, and the prefix of every path there."""
    if url.startswith(_UNIX):
        return _UnixConnection(url.removeprefix(_UNIX), timeout), ""
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = credentials.tls().context()
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout, context=context
        ), parts.path
    credentials.refuse_certificates(url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout), parts.path


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock: Any = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._path))


def _said(response: http.client.HTTPResponse) -> str:
    """The status, and the broker's message."""
    try:
        body = json.loads(response.read(_MOST_ERROR_BYTES))
        said = body["error"] if "error" in body else body["detail"]
        text = str(said).encode(errors="replace").decode()  # a lone surrogate could not be printed
    except (ValueError, TypeError, KeyError, RecursionError, OSError, http.client.HTTPException):
        return f"HTTP status {response.status}"
    return f"HTTP status {response.status}: {text[:300]}"


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """The broker of the settings in force, or at ``given``, the value of ``--broker``: its HTTP port or socket.

    A command's parameter of this type stands for the options ``--broker``, ``--token-file``, ``--user``,
    ``--password-file``, ``--cert``, ``--key`` and ``--ca``.
    """

    given: Annotated[
        str | None,
        typer.Option(
            "--broker",
            metavar="URL",
            help="The HTTP address of the running broker, or unix:FILE. Without it admin.socket of the settings, else "
            "http.listen (with --cert or --ca, http.tls.listen).",
            show_default=False,
        ),
    ] = None
    credentials: GivenCredentials = NO_CREDENTIALS

    @property
    def url(self) -> str:
        """The broker's address, without a slash at the end. Raises :exc:`BrokerUnreachable` if there is none."""
        return broker_url(self.given, tls=self.credentials.has_certificates)

    def get(self, path: str, *, timeout: float = TIMEOUT) -> str:
        """The body at a path such as ``/metrics``, at most 64 MiB; ``timeout`` is in seconds, for each wait.

        Raises :exc:`BrokerUnreachable`, also for a status other than success.
        """
        return get(self.url, path, timeout=timeout, credentials=self.credentials)

    def json(self, path: str, *, post: bool = False) -> dict[str, Any]:
        """The object of JSON in the answer to a GET or a POST, as for :meth:`get`."""
        text = get(self.url, path, credentials=self.credentials, method="POST" if post else "GET")
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise _another(self.url)
        return said

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a list in the answer, as for :meth:`json`."""
        items = self.json(path).get("items")
        if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
            raise _another(self.url)
        return items


def _another(url: str) -> BrokerUnreachable:
    return BrokerUnreachable(f"{url}: there is something else than a server of this release")
