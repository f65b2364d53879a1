"""The options of `broker-core tokens`: algorithms, and the places of keys and tokens."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from broker_core.cli.error_line import say
from broker_core.cli.options.credentials import LONGEST_SECRET, secret_text
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.settings import Algorithm

__all__ = [
    "AlgorithmOption",
    "SecretKeyOption",
    "StdinOption",
    "TokenArgument",
    "TokenFileOption",
    "given_token",
    "key_bytes",
]

AlgorithmOption: TypeAlias = Annotated[
    Algorithm | None,
    typer.Option(
        "--signature-algorithm",
        "-a",
        metavar="ALG",
        help="HS256 to HS512 with a secret; RS256 to RS512, PS256 to PS512, ES256 to ES512 or EdDSA with a key pair.",
        show_default=False,
    ),
]
SecretKeyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--secret-key",
        "-sk",
        metavar="KEY",
        help="The secret: file:PATH, env:NAME, data:;base64,... or a path.",
        show_default=False,
    ),
]
TokenArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="[TOKEN]",
        help="The token itself, which every user of the machine can then read; without it, the variable TOKEN.",
        show_default=False,
    ),
]
StdinOption: TypeAlias = Annotated[
    bool, typer.Option("--stdin", "-i", help="Read the token from standard input.", show_default=False)
]
TokenFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--token-file", "-f", metavar="FILE", help="Read the token from a file.", show_default=False
    ),
]


def key_bytes(given: Mapping[str, str | None], what: str) -> tuple[str, bytes]:
    """The one option that is given, and the bytes of its key. Raises :exc:`UnusableQuestion`.

    A key is given as for ``pulsar tokens``: as a URL, a file, or Base64 text in the option itself.
    """
    from broker_core.settings import KeySource

    named = {option: text for option, text in given.items() if text is not None}
    if len(named) != 1:
        raise UnusableQuestion(f"give the key {what}: {' or '.join(given)}{', not both' if named else ''}")
    ((option, text),) = named.items()
    try:
        if text.startswith(("file:", "env:", "data:")):
            source = KeySource.parse(text)
        elif Path(text).exists():
            source = KeySource("file", text)
        else:
            source = KeySource.parse(f"data:;base64,{text}")
        if source.kind == "data":
            _warn_of_command_line("a key", f"{option} file:PATH or env:NAME")
        data = source.read()
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
        if not text.startswith(("file:", "env:", "data:")):
            reason = "it is no file, and no Base64 text of a key"
        elif isinstance(error, OSError):
            reason = f"{text.removeprefix('file:')}: {reason}"
        raise UnusableQuestion(f"{option}: {reason}") from None
    if not data.strip():
        raise UnusableQuestion(f"{option}: it is empty")
    # A shorter one, or a key in PEM, is refused.
    is_text = len(data) > 32 and data.isascii() and not data.startswith(b"-----")
    if option == "--secret-key" and is_text and data.endswith(b"\n"):
        say("warning: the secret ends in a line break, which is a part of it, here and for servers")
    return option, data


def given_token(token: str | None, *, stdin: bool, file: Path | None) -> str:
    """The token of an argument, standard input, a file or the variable TOKEN, without white space around it.

    Raises :exc:`UnusableQuestion`.
    """
    if sum((token is not None, stdin, file is not None)) > 1:
        raise UnusableQuestion("give the token once: as TOKEN, by --stdin or by --token-file")
    if token is not None:
        _warn_of_command_line("a token", "--token-file FILE, or --stdin")
        found = token
    elif stdin:
        found = sys.stdin.buffer.read(LONGEST_SECRET + 1).decode(errors="replace")
    elif file is not None:
        found = secret_text("--token-file", file)
    else:
        found = os.environ.get("TOKEN", "")
        if not found:
            raise UnusableQuestion(
                "there is no token: say --token-file FILE or --stdin, or set the variable TOKEN"
            )
    found = found.strip()
    if not found or len(found) > LONGEST_SECRET:
        raise UnusableQuestion(
            f"there is no token: {'it is empty, or no text' if not found else 'it is too long for one'}"
        )
    return found


def _warn_of_command_line(what: str, instead: str) -> None:
    say(f"warning: every user of this machine can read {what} in a command line: better {instead}")
