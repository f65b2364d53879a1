"""`broker-core tokens show` and `validate`: the claims of a token, and whether a key has signed it."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from broker_core.cli.help_examples import examples
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.cli.options.tokens import (
    AlgorithmOption,
    SecretKeyOption,
    StdinOption,
    TokenArgument,
    TokenFileOption,
    given_token,
    key_bytes,
)
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from broker_core.settings import Algorithm

__all__ = ["EXAMPLES", "TokenInvalid", "show_token", "validate_token"]

EXAMPLES: Final = examples(
    "broker-core tokens show --token-file team-a.token",
    "broker-core tokens validate --public-key file:public.der --token-file team-a.token",
    "broker-core tokens validate --secret-key file:secret.key --stdin < team-a.token",
)


class TokenInvalid(BrokerCoreError):
    """A server with this key would refuse the token; the message says why."""


def show_token(
    token: TokenArgument = None,
    *,
    stdin: StdinOption = False,
    token_file: TokenFileOption = None,
) -> None:
    """Print the header and the claims of a token, unverified."""
    from broker_core.redaction import printable

    parts = given_token(token, stdin=stdin, file=token_file).split(".")
    if len(parts) < 2:
        raise TokenInvalid("it is no token: a token has parts with dots between")
    try:
        header, claims = (
            base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
            for part in parts[:2]
        )
    except ValueError:
        raise TokenInvalid("it is no token: its parts are not Base64url") from None
    print(
        printable(header.decode(errors="replace")),
        "---",
        printable(claims.decode(errors="replace")),
        sep="\n",
    )


def validate_token(
    token: TokenArgument = None,
    *,
    stdin: StdinOption = False,
    token_file: TokenFileOption = None,
    secret_key: SecretKeyOption = None,
    public_key: Annotated[
        str | None,
        typer.Option(
            "--public-key",
            "-pk",
            metavar="KEY",
            help="The public key that verifies: file:PATH, env:NAME, data:;base64,... or a path.",
            show_default=False,
        ),
    ] = None,
    algorithm: AlgorithmOption = None,
) -> None:
    """Verify a token by a key, and print its claims.

    Its signature and its times are verified by the rules of a server. Without an algorithm, the token may have any that
    its key is for.
    """
    from broker_core.access import (
        AuthenticationFailed,
        CompactToken,
        MalformedToken,
        TokenKeys,
        algorithms_for,
        check_header,
        principal_of,
        read_json,
    )
    from broker_core.redaction import printable
    from broker_core.settings import KeySource, TokenSettings

    option, data = key_bytes(
        {"--secret-key": secret_key, "--public-key": public_key}, "that verifies the token"
    )
    text = given_token(token, stdin=stdin, file=token_file)
    try:
        allowed: tuple[Algorithm, ...] = (
            (algorithm,)
            if algorithm is not None
            else algorithms_for(data, is_secret=option == "--secret-key")
        )
        settings = TokenSettings(key=KeySource("data", base64.b64encode(data).decode()), algorithms=allowed)
        keys = TokenKeys.read(settings)
    except ValueError as error:
        raise UnusableQuestion(f"{option}: {error}") from None
    try:
        parsed = CompactToken.parse(text.encode())
        named, key_id = check_header(parsed.header)
        problem = keys.problem(named, key_id, parsed.signed, parsed.signature)
        if problem is not None:
            raise TokenInvalid(f"the token is not valid: {_about_given_key(problem)}")
        claims = read_json(parsed.payload, "payload")
        principal_of(claims, settings, time.time())
    except MalformedToken as error:
        raise TokenInvalid(f"it is no token: {error}") from None
    except AuthenticationFailed as error:
        raise TokenInvalid(f"the token is not valid: {error.detail or error.reason}") from None
    print(printable(_as_java_shows(claims)))


def _about_given_key(problem: str) -> str:
    """A problem with a signature, with the words for a server's log replaced."""
    return problem.replace("the key of this server", "the key that is given").replace(
        "is not one of authentication.token.algorithms", "this key does not verify"
    )


def _as_java_shows(value: Any) -> str:
    """A value of JSON as ``pulsar tokens validate`` prints it: in Java's form of maps and lists."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}={_as_java_shows(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_java_shows, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
