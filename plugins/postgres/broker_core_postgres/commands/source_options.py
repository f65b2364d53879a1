"""The options of `sync` and `verify` for the source of a mirror and its scope."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from broker_core.catalog import SqliteCatalog
from broker_core.quantities import parse_duration
from broker_core_postgres.fill import FillingFailed
from broker_core_postgres.fill.sync import (
    PARALLEL,
    TIMEOUT,
    AdminAddress,
    CatalogSource,
    ClusterSource,
    MirrorSource,
    PulsarAdmin,
    Retry,
    Scope,
)

__all__ = ["SourceOptions", "open_source"]

_LONGEST_TOKEN: Final = 65_536


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options for the source, as given: a command takes one parameter for all of them."""

    admin_url: Annotated[
        str | None,
        typer.Option(
            "--admin-url",
            metavar="URL",
            help="The cluster's admin interface, such as http://localhost:8080.",
            show_default=False,
        ),
    ] = None
    catalog: Annotated[
        Path | None,
        typer.Option(
            "--catalog",
            metavar="FILE",
            help="The embedded catalogue, instead of a cluster.",
            show_default=False,
        ),
    ] = None
    tenant: Annotated[
        list[str] | None,
        typer.Option(
            "--tenant",
            metavar="PATTERN",
            help="Only tenants that match, with * and ?; may be repeated. All others stay as they are.",
            show_default=False,
        ),
    ] = None
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            metavar="PATTERN",
            help="Only namespaces (tenant/namespace) that match, with * and ?; may be repeated.",
            show_default=False,
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="A file that holds the cluster's token.", show_default=False
        ),
    ] = None
    token_env: Annotated[
        str | None,
        typer.Option(
            "--token-env",
            metavar="NAME",
            help="The variable of the environment that holds the cluster's token.",
            show_default=False,
        ),
    ] = None
    ca_file: Annotated[
        Path | None,
        typer.Option(
            "--ca-file",
            metavar="FILE",
            help="The certificates (PEM) of the authorities that the cluster's certificate is checked with.",
            show_default=False,
        ),
    ] = None
    cert_file: Annotated[
        Path | None,
        typer.Option(
            "--cert-file",
            metavar="FILE",
            help="Our own certificate (PEM), for mutual TLS.",
            show_default=False,
        ),
    ] = None
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="FILE", help="The key of --cert-file (PEM).", show_default=False),
    ] = None
    no_properties: Annotated[
        bool,
        typer.Option(
            "--no-properties",
            help="Leave properties as they are: reading them is one request per topic.",
            show_default=False,
        ),
    ] = False
    parallel: Annotated[
        int, typer.Option("--parallel", metavar="N", help="Requests to the cluster at once.", min=1, max=512)
    ] = PARALLEL
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="How long one request may take, such as 30s.")
    ] = f"{TIMEOUT:g}s"
    tries: Annotated[
        int,
        typer.Option(
            "--tries",
            metavar="N",
            help="How often a request is sent in all if it gets 5xx, 429 or no answer; the pauses grow.",
            min=1,
            max=50,
        ),
    ] = Retry().tries

    @property
    def scope(self) -> Scope:
        """The scope. Raises :exc:`FillingFailed` for a pattern that can match nothing."""
        return Scope.parse(self.tenant or (), self.namespace or ())

    def address(self) -> AdminAddress:
        """The cluster's address; reads files. Raises :exc:`FillingFailed`, and :exc:`OSError` for a file."""
        assert self.admin_url is not None
        if self.token_file is not None and self.token_env is not None:
            raise FillingFailed("--token-file and --token-env are both given: which one counts?")
        token = None
        if self.token_file is not None:
            with self.token_file.open("rb") as stream:
                token = _token(stream.read(_LONGEST_TOKEN + 1), str(self.token_file))
        elif self.token_env is not None:
            said = os.environ.get(self.token_env)
            if said is None:
                raise FillingFailed(f"There is no variable {self.token_env} in the environment (--token-env)")
            token = _token(said.encode(), f"${self.token_env}")
        return AdminAddress(self.admin_url, token, self._tls())

    def _tls(self) -> ssl.SSLContext | None:
        if self.key_file is not None and self.cert_file is None:
            raise FillingFailed("--key-file needs --cert-file")
        if self.ca_file is None and self.cert_file is None:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except ssl.SSLError as error:
            raise FillingFailed(f"{self.ca_file}: no authorities in PEM format ({error.reason})") from None
        if self.cert_file is not None:
            try:
                # With a password given, OpenSSL does not ask for one at the terminal.
                context.load_cert_chain(self.cert_file, self.key_file, password="")
            except ssl.SSLError as error:
                raise FillingFailed(
                    f"{self.cert_file}: no usable certificate with its key, unencrypted ({error.reason})"
                ) from None
        return context


@asynccontextmanager
async def open_source(given: SourceOptions) -> AsyncIterator[MirrorSource]:
    """Open the cluster or the catalogue."""
    if (given.admin_url is None) == (given.catalog is None):
        raise FillingFailed("Name the source by either --admin-url or --catalog")
    if given.catalog is not None:
        with SqliteCatalog(given.catalog, create=False) as catalog:
            yield CatalogSource(catalog)
        return
    try:
        timeout = parse_duration(given.timeout)
    except ValueError as error:
        raise FillingFailed(f"--timeout {error}") from None
    if not timeout:
        raise FillingFailed("--timeout must be more than 0 seconds")
    retry = Retry(tries=given.tries)
    async with PulsarAdmin(given.address(), parallel=given.parallel, timeout=timeout, retry=retry) as admin:
        yield ClusterSource(admin, properties=not given.no_properties, parallel=given.parallel)


def _token(data: bytes, where: str) -> str:
    try:
        token = data.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token or len(data) > _LONGEST_TOKEN or any(not "!" <= letter <= "~" for letter in token):
        raise FillingFailed(f"{where} holds no token: one line of printable ASCII")
    return token
