"""TLS of a client: the certificates that it trusts, its own certificate, and the context made of them."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from broker_core.client.client_errors import TlsFailed

__all__ = ["ClientTls", "tls_arguments"]

_TLS_END: Final = 1.0  # seconds for the end of TLS when a connection is closed in an orderly way
_StrPath: TypeAlias = str | os.PathLike[str]
#: Modification time, size and inode of each file.
_Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]


@dataclass(slots=True)
class _Made:
    """The context made of the files, and the reason why it was not made anew."""

    stamp: _Stamp = ()
    context: ssl.SSLContext | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ClientTls:
    """Files and checks of a client's TLS.

    ``ca`` is a file of trusted certificates (``None``: the system's). ``certificate`` and ``key`` are the client's
    own, as PEM; without ``key`` it is in the file of the certificate. ``verify_hostname``: whether the server's
    certificate must be for its host name; it must be trusted in any case.
    """

    ca: _StrPath | None = None
    certificate: _StrPath | None = None
    key: _StrPath | None = None
    verify_hostname: bool = True
    _made: _Made = field(default_factory=_Made, init=False, repr=False, compare=False)

    def context(self) -> ssl.SSLContext:
        """A context of TLS 1.2 or later. It reads files: call it in a thread.

        Files that changed are read again. If they cannot be used, the former context stays and :attr:`problem` says
        why; without a former one :exc:`~broker_core.client.TlsFailed` is raised.
        """
        made = self._made
        stamp = tuple(map(_stamp, (self.ca, self.certificate, self.key)))
        if made.context is not None and stamp == made.stamp:
            return made.context
        try:
            context = self._make()
        except TlsFailed as failed:
            if made.context is None:
                raise
            made.stamp, made.problem = stamp, str(failed)
            return made.context
        made.stamp, made.context, made.problem = stamp, context, None
        return context

    @property
    def problem(self) -> str | None:
        """The reason why changed files are not in use; ``None`` if the files in use are the ones on disk."""
        return self._made.problem

    def _make(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (OSError, ValueError) as error:
            raise TlsFailed(f"cannot read the trusted certificates in {self.ca}: {_reason(error)}") from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify_hostname
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, password=_no_password)
            except (OSError, ValueError) as error:
                files = f"{self.certificate}{f' and {self.key}' if self.key is not None else ''}"
                raise TlsFailed(f"cannot use the client certificate in {files}: {_reason(error)}") from None
        return context


async def tls_arguments(tls: ClientTls | None, host: str) -> dict[str, Any]:
    """The arguments of asyncio for a connection to a host by TLS; none without it. Raises
    :exc:`~broker_core.client.TlsFailed`.
    """
    if tls is None:
        return {}
    return {
        "ssl": await asyncio.to_thread(tls.context),
        "server_hostname": host.partition("%")[0].removesuffix("."),
        "ssl_shutdown_timeout": _TLS_END,
    }


def _no_password() -> str:
    """No password: OpenSSL would ask the terminal for it."""
    raise ValueError("the key is encrypted; decrypt it first")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        known = {
            "KEY_VALUES_MISMATCH": "the key is not the one of the certificate",
            "NO_CERTIFICATE_ASSIGNED": "the key is not the one of the certificate",  # of another kind
            "NO_CERTIFICATE_OR_CRL_FOUND": "there is no certificate in PEM form",
            None: "it has no PEM form, or a damaged one",
        }
        return known.get(error.reason, f"it has no PEM form, or a damaged one ({error.reason})")
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return str(error)


def _stamp(file: _StrPath | None) -> tuple[int, int, int] | None:
    if file is None:
        return None
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
