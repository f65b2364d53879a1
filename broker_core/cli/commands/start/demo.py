"""`broker-core demo`: serve a small catalogue on this machine, and say what to try on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples

if TYPE_CHECKING:
    from broker_core.broker import Broker
    from broker_core.quantities import ListenAddress
    from broker_core.settings import Settings

__all__ = ["EXAMPLES", "serve_demo"]

EXAMPLES: Final = examples("broker-core demo", "broker-core demo --folder /tmp/broker-core-demo")


def serve_demo(
    invocation: Invocation,
    *,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder of its settings and topics. By default broker-core-demo in the working directory.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve a small demo catalogue on this machine, filled on the first start, and show three commands to try.

    With --config its settings are served instead of the demo's own, on the demo's topics.
    """
    from broker_core.cli.commands.start.serve import check_arguments, serve_options
    from broker_core.cli.common_options import Invocation
    from broker_core.cli.demo_catalog import DEMO_FOLDER, prepare_demo, program
    from broker_core.cli.server_process.server_process import serve
    from broker_core.quantities import ListenAddress

    demo = prepare_demo(folder or DEMO_FOLDER)
    config, catalog = invocation.config or demo.config, demo.catalog if invocation.config else None
    loaded = Invocation(config=config).load(serve_options(None, None, catalog))
    taken = _taken(loaded.settings)
    free = {name: str(ListenAddress(listen.host, 0)) for name, listen in taken.items()}
    options = serve_options(free.get("pulsar"), free.get("http"), catalog)
    loaded = Invocation(config=config).load(options)

    async def explain(broker: Broker) -> None:
        host, port = broker.pulsar_address
        page = broker.http_address if "explorer" in broker.settings.plugins.enabled else None
        lines = [
            f"{'filled' if demo.filled else 'found'} {demo.catalog}; its settings are {demo.config}",
            *(f"{name}: {listen} is taken, so a free port is used" for name, listen in taken.items()),
            *([] if page is None else [f"Look at it in a browser: http://{ListenAddress(*page)}/"]),
            "Try, in another terminal:",
            *(
                f"  {hint}"
                for hint in demo.hints(f"pulsar://{ListenAddress(host, port)}", program(sys.argv[0]))
            ),
            "Ctrl-C ends it.",
        ]
        print("\n".join(lines), flush=True)

    # At a terminal the line `ready` and what to try stand together; a log file has its line of its own.
    logged = loaded.settings.log.file is not None
    serve(
        loaded.settings,
        debug=invocation.debug,
        when_ready=explain,
        check=check_arguments(config, options),
        log_ready=logged,
    )


def _taken(settings: Settings) -> dict[str, ListenAddress]:
    """The addresses on which another program listens."""
    from broker_core.cli.startup_checks.listen_addresses import why_not_free

    tables = {"pulsar": settings.pulsar.listen, **({"http": settings.http.listen} if settings.http else {})}
    return {name: listen for name, listen in tables.items() if why_not_free(listen) is not None}
