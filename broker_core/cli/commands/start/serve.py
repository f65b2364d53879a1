"""`broker-core serve`: run the server until a signal ends it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from broker_core.cli.common_options import Invocation, Options, catalog_option
from broker_core.cli.early_signals import note_hangups
from broker_core.cli.help_examples import examples

__all__ = [
    "EXAMPLES",
    "CatalogOption",
    "HttpOption",
    "PulsarOption",
    "check_arguments",
    "serve_clients",
    "serve_options",
]

EXAMPLES: Final = examples(
    "broker-core serve --config broker-core.toml",
    "# on a free port, with a catalogue of its own; the line `ready` says which",
    "broker-core serve --pulsar 127.0.0.1:0 --catalog topics.sqlite",
)


PulsarOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Serve clients here, instead of pulsar.listen.", show_default=False
    ),
]
HttpOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Serve metrics and health here, instead of http.listen.", show_default=False
    ),
]
CatalogOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The catalogue, instead of catalog.path.", show_default=False),
]


def serve_clients(
    invocation: Invocation,
    *,
    pulsar: PulsarOption = None,
    http: HttpOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Serve clients until SIGTERM or SIGINT.

    Prints one line to standard output once it accepts connections: `ready pulsar=HOST:PORT http=HOST:PORT`. Logs go to
    standard error, or to log.file, which SIGHUP reopens. After a signal, answers under way are finished first; a second
    signal ends the server at once.
    """
    note_hangups()  # before anything else, which takes a while
    from broker_core.cli.new_catalog import NewCatalog
    from broker_core.cli.server_process.server_process import serve

    options = serve_options(pulsar, http, catalog)
    loaded = invocation.load(options)
    new = NewCatalog.of(loaded) if loaded.settings.upstream is None else None
    if new is not None:
        new.check(loaded.settings)
    with nullcontext() if new is None else new.for_server() as when_ready:
        serve(
            loaded.settings,
            debug=invocation.debug,
            when_ready=when_ready,
            load=lambda: invocation.load(options, again=True).settings,
            file="" if loaded.file is None else str(loaded.file.absolute()),
            check=check_arguments(invocation.config, options),
        )


def serve_options(pulsar: str | None, http: str | None, catalog: Path | None) -> Options:
    """The options that override a setting, for :meth:`Invocation.load`."""
    return {
        "--pulsar": (("pulsar", "listen"), pulsar),
        "--http": (("http", "listen"), http),
        **catalog_option(catalog),
    }


def check_arguments(config: Path | None, options: Options) -> list[str]:
    """The options of the command `check` for the settings of a server started with the given options."""
    given = {"--config": config, **{name: value for name, (_, value) in options.items()}}
    return [f"{name}={value}" for name, value in given.items() if value is not None]
