"""`broker-core kafka users ...`: the users of the catalogue, with a SCRAM credential for each mechanism."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import opened_catalog, written_catalog
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.cli.options.topics import CatalogOption
from broker_core.errors import BrokerCoreError

__all__ = ["EXAMPLES", "UserMissing", "add_user", "list_users", "remove_user"]

EXAMPLES: Final = examples(
    "broker-core kafka users add orders-app --password-stdin < password.txt",
    "broker-core kafka users list",
    "broker-core kafka users remove orders-app",
)

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The name of the user: its principal is User:NAME.", show_default=False
    ),
]
MechanismOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism",
        metavar="M",
        help="SCRAM-SHA-256 or SCRAM-SHA-512; may be repeated. Without it, both.",
        show_default=False,
    ),
]


class UserMissing(BrokerCoreError):
    """There is no such user in the catalogue."""


def add_user(
    invocation: Invocation,
    name: NameArgument,
    *,
    mechanism: MechanismOption = None,
    password_stdin: Annotated[
        bool,
        typer.Option("--password-stdin", help="Read the password from standard input.", show_default=False),
    ] = False,
    allow_short: Annotated[
        bool,
        typer.Option("--allow-short", help="Take a password of fewer than 8 characters."),
    ] = False,
    catalog: CatalogOption = None,
) -> None:
    """Add a user, or give it a new password.

    The catalogue keeps no password, but only the values by which SCRAM verifies one.
    """
    from broker_core.service import check_user, store_user

    try:
        check_user(name)
    except ValueError as error:
        raise UnusableQuestion(f"NAME {name!r}: {error}") from error
    mechanisms = _mechanisms(mechanism)
    if not password_stdin:
        raise UnusableQuestion(
            "a password is read from standard input: say --password-stdin, since every user of the machine can read a "
            "command line"
        )
    password = _password(allow_short=allow_short)
    with written_catalog(invocation, catalog, create=True) as opened:
        store_user(opened, name, password, mechanisms)
        print(f"stored the user {name} for {', '.join(mechanisms)}")


def list_users(invocation: Invocation, *, catalog: CatalogOption = None) -> None:
    """List users with their mechanisms."""
    from broker_core.cli.printed_output import print_lines
    from broker_core.kafka.scram import DECOY_USER

    found: dict[str, list[str]] = {}
    with opened_catalog(invocation, catalog) as opened:
        for row in opened.kafka_users():
            if row.name != DECOY_USER:
                found.setdefault(row.name, []).append(row.mechanism)
    print_lines(f"{name}  {', '.join(mechanisms)}" for name, mechanisms in found.items())


def remove_user(
    invocation: Invocation,
    name: NameArgument,
    *,
    mechanism: MechanismOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Remove a user.

    With a mechanism only its credential for it. A running server ends the user's connections within a minute.
    """
    from broker_core.kafka.scram import DECOY_USER

    mechanisms = _mechanisms(mechanism)
    with written_catalog(invocation, catalog) as opened:
        removed = [] if name == DECOY_USER else opened.remove_kafka_user(name, *mechanisms)
        if not removed:
            raise UserMissing(f"There is no user {name!r} for {' or '.join(mechanisms)} in the catalogue")
        print(f"removed the user {name} for {', '.join(removed)}")


def _mechanisms(given: list[str] | None) -> list[str]:
    from broker_core.kafka.scram import HASHES

    for mechanism in given or ():
        if mechanism not in HASHES:
            raise UnusableQuestion(f"--mechanism {mechanism!r}: expected {' or '.join(HASHES)}")
    return list(dict.fromkeys(given)) if given else list(HASHES)


def _password(*, allow_short: bool) -> bytes:
    from broker_core.service import LONGEST_PASSWORD, check_password

    password = sys.stdin.buffer.read(LONGEST_PASSWORD + 3).removesuffix(b"\n").removesuffix(b"\r")
    if not password:
        raise UnusableQuestion("--password-stdin: standard input has no password")
    try:
        check_password(password, short=None if allow_short else "--allow-short")
    except ValueError as error:
        raise UnusableQuestion(f"--password-stdin: {error}") from None
    return password
