"""The options for servers that authenticate: a token or a password in a file, certificates."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from broker_core.client import ClientTls, Credentials

__all__ = [
    "LONGEST_SECRET",
    "NO_CREDENTIALS",
    "GivenCredentials",
    "UnusableCredentials",
    "secret_text",
]

#: Bytes of a secret; more than any header has room for, and any server accepts.
LONGEST_SECRET: Final = 64 * 1024

#: Parts of OpenSSL's messages for a certificate of an authority that is not trusted.
_UNKNOWN_AUTHORITY: Final = ("self-signed certificate", "local issuer certificate", "first certificate")


class UnusableCredentials(BrokerCoreError):
    """A file of credentials cannot be used; the message names it, and shows nothing of its content."""


def secret_text(option: str, file: Path, *, encoding: str = "utf-8", first_line: bool = False) -> str:
    """The content of a file that an option names; empty if it is not text, or too long for a secret.

    Raises :exc:`UnusableCredentials` for a file that cannot be read.
    """
    try:
        with file.open("rb") as stream:
            data = stream.readline(LONGEST_SECRET + 1) if first_line else stream.read(LONGEST_SECRET + 1)
    except OSError as error:
        raise UnusableCredentials(f"{option} {file}: {(error.strerror or str(error)).lower()}") from None
    try:
        return data.decode(encoding) if len(data) <= LONGEST_SECRET else ""
    except UnicodeDecodeError:
        return ""


@dataclass(frozen=True, slots=True)
class GivenCredentials:
    """The values of ``--token-file``, ``--cert``, ``--key``, ``--ca``, ``--user`` and ``--password-file``; files are
    read when they are used.
    """

    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Send the token in this file: one on the command line could be read by every user of the machine.",
            show_default=False,
        ),
    ] = None
    cert: Annotated[
        Path | None,
        typer.Option(
            "--cert", metavar="FILE", help="Ask with this client certificate, as PEM.", show_default=False
        ),
    ] = None
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="The key of --cert; without it, it is in the same file.",
            show_default=False,
        ),
    ] = None
    ca: Annotated[
        Path | None,
        typer.Option(
            "--ca",
            metavar="FILE",
            help="Trust these certificates, as PEM, instead of those of the system.",
            show_default=False,
        ),
    ] = None
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="NAME", help="Ask as this user, with --password-file.", show_default=False
        ),
    ] = None
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--password-file",
            metavar="FILE",
            help="The password of --user, in the first line of this file.",
            show_default=False,
        ),
    ] = None

    @property
    def has_certificates(self) -> bool:
        """Whether any of the options is for TLS."""
        return self.cert is not None or self.key is not None or self.ca is not None

    def token(self) -> str | None:
        """The token, without white space around it.

        Raises :exc:`UnusableCredentials`, and :exc:`UnusableQuestion` beside a user.
        """
        if self.token_file is None:
            return None
        if self.user is not None or self.password_file is not None:
            raise UnusableQuestion("--token-file and --user are two ways to authenticate: give one")
        token = secret_text("--token-file", self.token_file, encoding="ascii").strip()
        if not token or not token.isprintable() or " " in token:
            raise UnusableCredentials(f"--token-file {self.token_file}: there is no token in it")
        return token

    def password(self) -> tuple[str, str] | None:
        """The user, and its password: the first line of the file.

        Raises :exc:`UnusableCredentials`, and :exc:`UnusableQuestion` for one without the other.
        """
        if self.user is None and self.password_file is None:
            return None
        if self.user is None or self.password_file is None:
            raise UnusableQuestion("--user and --password-file go together")
        if ":" in self.user:
            raise UnusableQuestion("--user: the name of a user has no colon")
        password = secret_text("--password-file", self.password_file, first_line=True).rstrip("\r\n")
        if not password:
            raise UnusableCredentials(
                f"--password-file {self.password_file}: there is no password in its first line"
            )
        return self.user, password

    def tls(self) -> ClientTls:
        """The certificates. Raises :exc:`UnusableCredentials` for a key without a certificate."""
        from broker_core.client import ClientTls

        if self.key is not None and self.cert is None:
            raise UnusableCredentials("--key is the key of a certificate: give --cert too")
        return ClientTls(ca=self.ca, certificate=self.cert, key=self.key)

    def refuse_certificates(self, url: str) -> None:
        """Raise :exc:`UnusableCredentials` if certificates are given for an address without TLS."""
        if self.has_certificates:
            raise UnusableCredentials(f"--cert, --key and --ca are for TLS, and {url} has none")

    @property
    def after_refusal(self) -> str:
        """Advice for a user whose credentials a server refuses."""
        if self.token_file is None and self.cert is None and self.user is None:
            return "ask with --token-file FILE, --user NAME or --cert FILE"
        return "the log of the server says why"

    def after_distrust(self, reason: str) -> str | None:
        """Advice for a server's certificate that OpenSSL refuses for a reason; ``None`` if there is none."""
        if not any(text in reason for text in _UNKNOWN_AUTHORITY):
            return None
        if self.ca is None:
            return "if its authority is not one of the system, name it with --ca FILE"
        return f"{self.ca} does not have its authority"

    def of_client(self) -> Credentials | None:
        """The method and its data for Pulsar's protocol: the token or password, else the certificate, else none.

        Raises :exc:`UnusableCredentials` and :exc:`UnusableQuestion`.
        """
        from broker_core.client import Basic, Credentials

        token, named = self.token(), self.password()
        if token is not None:
            data = token.encode()
            return Credentials("token", lambda: data)
        if named is not None:
            return Basic(*named).credentials
        return None if self.cert is None else Credentials("tls")

    def of_http(self) -> str | None:
        """The header ``Authorization``, as of :meth:`of_client`; ``None`` without one."""
        token, named = self.token(), self.password()
        if named is not None:
            return f"Basic {b64encode(':'.join(named).encode()).decode()}"
        return None if token is None else f"Bearer {token}"


NO_CREDENTIALS: Final = GivenCredentials()
