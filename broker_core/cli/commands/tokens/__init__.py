"""`broker-core tokens ...`: keys and tokens of clients, in the files of ``pulsar tokens``."""

from __future__ import annotations

from typing import Final

import typer

from broker_core.cli.common_options import command
from broker_core.cli.deferred_commands import DeferredGroup, deferred_commands

__all__ = ["app"]

_HELP: Final = "Make keys and tokens for clients, as `pulsar tokens` does; show and validate tokens."


class _TokensCommands(DeferredGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands.tokens",
        {
            "create-secret-key": (
                "make:create_secret_key",
                "Make a secret that signs and verifies tokens.",
            ),
            "create-key-pair": (
                "make:create_key_pair",
                "Make a private key, which signs tokens, and its public key, which verifies them.",
            ),
            "create": ("make:create_token", "Print a new token of a role, signed by a key."),
            "show": ("read:show_token", "Print the header and the claims of a token, unverified."),
            "validate": ("read:validate_token", "Verify a token by a key, and print its claims."),
        },
    )


app = typer.Typer(
    name="tokens", cls=_TokensCommands, help=_HELP, no_args_is_help=True, pretty_exceptions_enable=False
)


@app.callback(help=_HELP)
@command
def _of_group() -> None:
    """The options ``--config`` and ``--debug`` of the group."""
