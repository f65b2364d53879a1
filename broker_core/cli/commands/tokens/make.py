"""`broker-core tokens create-secret-key`, `create-key-pair` and `create`: keys that sign tokens, and tokens."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker_core.cli.help_examples import examples
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.cli.options.tokens import AlgorithmOption, SecretKeyOption, key_bytes
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["EXAMPLES", "KeyFileRefused", "create_key_pair", "create_secret_key", "create_token"]

EXAMPLES: Final = examples(
    "# the server has the public key only: reading its files is not enough to make tokens",
    "broker-core tokens create-key-pair --output-private-key private.der --output-public-key public.der",
    "broker-core tokens create --private-key file:private.der --subject team-a --expiry-time 30d > team-a.token",
    "broker-core tokens validate --public-key file:public.der --token-file team-a.token",
)

_PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644


class KeyFileRefused(BrokerCoreError):
    """The file of a key is there already: overwritten, all tokens of the former key would be worth nothing."""


def create_secret_key(
    *,
    algorithm: AlgorithmOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the secret to a new file, which its owner alone can read, and not to standard output.",
            show_default=False,
        ),
    ] = None,
    as_base64: Annotated[
        bool,
        typer.Option("--base64", "-b", help="Write Base64 text, as a data: URL has it.", show_default=False),
    ] = False,
) -> None:
    """Make a secret that signs and verifies tokens.

    Without an algorithm it is one for HS256. Whoever can read it can make tokens of any role.
    """
    import base64

    from broker_core.access import new_secret

    with _usable("--signature-algorithm"):
        secret = new_secret(algorithm or "HS256")
    data = base64.b64encode(secret) if as_base64 else secret
    if output is not None:
        _write_new([(output, data, _PRIVATE)])
        return
    if sys.stdout.isatty() and not as_base64:
        raise UnusableQuestion(
            "a secret is bytes, which no terminal can show: say --output FILE, or --base64"
        )
    sys.stdout.buffer.write(data)


def create_key_pair(
    *,
    private: Annotated[
        Path, typer.Option("--output-private-key", metavar="FILE", help="The new file of the private key.")
    ],
    public: Annotated[
        Path, typer.Option("--output-public-key", metavar="FILE", help="The new file of the public key.")
    ],
    algorithm: AlgorithmOption = None,
) -> None:
    """Make a private key, which signs tokens, and its public key, which verifies them.

    Without an algorithm they are for RS256. The owner alone can read the file of the private key.
    """
    from broker_core.access import new_key_pair

    if private.resolve() == public.resolve():
        raise UnusableQuestion("--output-public-key: it is the file of the private key")
    with _usable("--signature-algorithm"):
        private_bytes, public_bytes = new_key_pair(algorithm or "RS256")
    _write_new([(private, private_bytes, _PRIVATE), (public, public_bytes, _PUBLIC)])


def create_token(
    *,
    subject: Annotated[
        str,
        typer.Option("--subject", "-s", metavar="ROLE", help="The role that a client with the token has."),
    ],
    secret_key: SecretKeyOption = None,
    private_key: Annotated[
        str | None,
        typer.Option(
            "--private-key",
            "-pk",
            metavar="KEY",
            help="The private key that signs: file:PATH, env:NAME, data:;base64,... or a path.",
            show_default=False,
        ),
    ] = None,
    expiry_time: Annotated[
        str | None,
        typer.Option(
            "--expiry-time",
            "-e",
            metavar="DURATION",
            help="How long the token is valid: 1h, 3d, 2w, 1y. By default it never expires.",
            show_default=False,
        ),
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--headers",
            "-hs",
            metavar="NAME=VALUE",
            help="One more header, such as kid=KEY-ID; may be repeated.",
            show_default=False,
        ),
    ] = None,
    algorithm: AlgorithmOption = None,
) -> None:
    """Print a new token of a role, signed by a key."""
    from broker_core.access import Principal, algorithms_for, signed_token
    from broker_core.access import private_key as parse_private_key

    try:
        Principal(subject)
    except ValueError as error:
        raise UnusableQuestion(f"--subject {subject!r}: the {error}") from error
    expires = None if expiry_time is None else _expiry(expiry_time)
    option, data = key_bytes(
        {"--secret-key": secret_key, "--private-key": private_key}, "that signs the token"
    )
    with _usable(option):
        if option == "--secret-key":
            algorithms_for(data, is_secret=True)  # or servers would refuse it, or anybody would know it
        key = data if option == "--secret-key" else parse_private_key(data)
        print(
            signed_token(key, subject, expires=expires, headers=_headers(headers or ()), algorithm=algorithm)
        )


def _expiry(text: str) -> datetime:
    from datetime import UTC, datetime, timedelta

    from broker_core.quantities import parse_duration

    try:
        seconds = parse_duration(text.lower())  # as Pulsar's tool, which takes 3D for 3d
        if seconds < 1:
            raise ValueError(f"{text!r} is over at once: a token has whole seconds")
        return datetime.now(UTC) + timedelta(seconds=seconds)
    except (ValueError, OverflowError) as error:
        said = "it ends after the year 9999" if isinstance(error, OverflowError) else str(error)
        raise UnusableQuestion(f"--expiry-time: {said}") from None


def _headers(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, separator, value = each.partition("=")
        if not separator or not name:
            raise UnusableQuestion(f"--headers {each!r}: expected NAME=VALUE")
        if name in ("alg", "typ", "crit", "zip", "cty", "b64"):
            raise UnusableQuestion(
                f"--headers {each!r}: it is set by itself, or servers refuse tokens with it"
            )
        if name in found:
            raise UnusableQuestion(f"--headers: {name!r} is given twice")
        found[name] = value
    return found


@contextmanager
def _usable(option: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise UnusableQuestion(f"{option}: {error}") from None


def _write_new(files: Sequence[tuple[Path, bytes, int]]) -> None:
    """Write new files with their modes, all or none of them. Raises :exc:`KeyFileRefused`, :exc:`OSError`."""
    made: list[Path] = []
    try:
        for path, data, mode in files:
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            except FileExistsError:
                raise KeyFileRefused(
                    f"{path} is there already, and a key is never overwritten: name another file, or remove it if no "
                    "token of it is in use"
                ) from None
            made.append(path)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
