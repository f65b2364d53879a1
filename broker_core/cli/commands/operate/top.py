"""`broker-core top`: a live screen of a running server's activity, or one snapshot for scripts."""

from __future__ import annotations

import json
import os
import select
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

import typer

from broker_core.cli.commands.operate.clients import CLIENT_COLUMNS, client_row, clients_path
from broker_core.cli.help_examples import examples
from broker_core.cli.running_broker import BrokerUnreachable, RunningBroker
from broker_core.counted import counted

__all__ = ["EXAMPLES", "show_top"]

EXAMPLES: Final = examples(
    "broker-core top --config broker-core.toml",
    "broker-core top --once --format json --config broker-core.toml",
)

#: Rows of each table.
_ROWS: Final = 8
#: The most frequent requests, from which namespaces are counted.
_QUESTIONS: Final = 1000
#: Codes for a terminal: show the alternate screen, clear it, and go back.
_OTHER_SCREEN: Final = "\x1b[?1049h"
_CLEAR: Final = "\x1b[H\x1b[J"
_OWN_SCREEN: Final = "\x1b[?1049l"
_PREFIX: Final = "broker_core_"
#: The metrics that are added up, by the names that the screen shows.
_COUNTERS: Final[Mapping[str, str]] = {
    "listings": "listing_requests_total",
    "errors": "listing_rejected_total",
    "kafka": "kafka_requests_total",
    "http": "http_requests_total",
}
_GAUGES: Final[Mapping[str, str]] = {
    "heap used": "topic_list_heap_memory_used_bytes",
    "heap limit": "topic_list_heap_memory_limit_bytes",
    "heap waiting": "topic_list_heap_queue_size",
    "direct used": "topic_list_direct_memory_used_bytes",
    "direct limit": "topic_list_direct_memory_limit_bytes",
    "direct waiting": "topic_list_direct_queue_size",
    "snapshots used": "snapshots_memory_used_bytes",
    "snapshots limit": "snapshots_memory_limit_bytes",
}


def show_top(
    *,
    once: Annotated[bool, typer.Option("--once", help="Print it once, with totals since the start.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", min=0.5, max=3600, help="Seconds between two readings.")
    ] = 2.0,
    form: Annotated[
        Literal["table", "json"], typer.Option("--format", help="How to print it, with --once.")
    ] = "table",
    broker: RunningBroker,
) -> None:
    """Show live what a running server does: questions, clients, namespaces, memory, plugins.

    The key q ends it, or Ctrl-C.
    """
    from broker_core.cli.printed_output import print_json, print_lines

    if once:
        state = _read_state(broker)
        if form == "json":
            print_json(state.values())
        else:
            print_lines(_screen(state, None))
        return
    if form == "json":
        raise typer.BadParameter("--format json is for --once")
    if not sys.stdout.isatty():
        raise typer.BadParameter("standard output is no terminal: --once prints it once")
    try:
        _show_live(broker, interval)
    except KeyboardInterrupt:
        return


def _show_live(broker: RunningBroker, interval: float) -> None:
    before: _ServerState | None = None
    sys.stdout.write(_OTHER_SCREEN)
    try:
        with _keys_at_once():
            while True:
                state = _read_state(broker)
                size = shutil.get_terminal_size()
                lines = _screen(state, before)[: size.lines - 1]
                sys.stdout.write(_CLEAR + "\n".join(line[: size.columns] for line in lines))
                sys.stdout.flush()
                before = state
                if _is_quit(interval):
                    return
    finally:
        sys.stdout.write(_OWN_SCREEN)
        sys.stdout.flush()


@contextmanager
def _keys_at_once() -> Iterator[None]:
    """Read each key at once, without echo, if standard input is a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _is_quit(seconds: float) -> bool:
    """Whether q is pressed within some seconds, or the terminal is gone; other keys do nothing."""
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return False
    end = time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], rest)[0]:
            keys = os.read(sys.stdin.fileno(), 1024)
            if not keys or b"q" in keys.lower():
                return True
    return False


@dataclass(frozen=True, slots=True)
class _ServerState:
    """The state of a server at one moment; ``at`` is in seconds of a monotonic clock."""

    metrics: Mapping[str, float]
    clients: Sequence[Mapping[str, Any]]
    total: int
    questions: Sequence[Mapping[str, Any]]
    plugins: Sequence[Mapping[str, Any]]
    #: Why the most frequent requests are not known.
    unknown: str = ""
    at: float = field(default_factory=time.monotonic)

    @property
    def namespaces(self) -> Counter[str]:
        """The number of requests by namespace, of the most frequent requests."""
        counts: Counter[str] = Counter()
        for each in self.questions:
            counts[each["namespace"]] += each["count"]
        return counts

    def values(self) -> dict[str, Any]:
        """All values, for programs."""
        return {
            "totals": {name: self.metrics[name] for name in _COUNTERS},
            "memory": {name.replace(" ", "_"): self.metrics[name] for name in _GAUGES},
            "clients": {"total": self.total, "busiest": list(self.clients)},
            "namespaces": dict(self.namespaces.most_common(_ROWS)),
            "questions": list(self.questions[:_ROWS]),
            "plugins": list(self.plugins),
        }


def _read_state(broker: RunningBroker) -> _ServerState:
    said = broker.json(clients_path(order="requests", limit=_ROWS))
    unknown, questions = "", list[Any]()
    try:
        lines = broker.get(f"/questions?limit={_QUESTIONS}").splitlines()
        questions = [json.loads(line) for line in lines]
    except BrokerUnreachable as error:  # they are off, or not for this client
        unknown = str(error)
    plugins = broker.json("/plugins").get("plugins", [])
    return _ServerState(
        _summed(broker.get("/metrics")), said["items"], said["total"], questions, plugins, unknown
    )


def _summed(text: str) -> dict[str, float]:
    """The metrics of the screen, each with all its labels added up."""
    from prometheus_client.parser import text_string_to_metric_families

    found: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name.removeprefix(_PREFIX)] += sample.value
    return {name: found[metric] for name, metric in {**_COUNTERS, **_GAUGES}.items()}


def _screen(state: _ServerState, before: _ServerState | None) -> list[str]:
    """The lines of the screen; rates per second if there is a state ``before``, else totals."""
    from broker_core.cli.printed_output import printable, table_text

    metrics = state.metrics
    seconds = 1.0 if before is None else max(state.at - before.at, 0.001)

    def since(now: float, then: float) -> float:
        return now if before is None else (now - then) / seconds

    per = "in all" if before is None else "per second"
    was = {} if before is None else before.metrics
    counts = [f"{name} {since(metrics[name], was.get(name, 0)):.0f}" for name in _COUNTERS]
    memory = [
        f"{kind} {_size(metrics[f'{kind} used']) or '0.0 MiB'} of {_size(metrics[f'{kind} limit']) or 'any'}"
        + (f", {metrics[f'{kind} waiting']:.0f} wait" if f"{kind} waiting" in metrics else "")
        for kind in ("heap", "direct", "snapshots")
    ]
    then = Counter[str]() if before is None else before.namespaces
    namespaces = sorted(
        ((since(count, then[name]), name) for name, count in state.namespaces.items()), reverse=True
    )
    known = {} if before is None else {_question(each): each["count"] for each in before.questions}
    questions = sorted(
        ((since(each["count"], known.get(_question(each), 0)), _question(each)) for each in state.questions),
        reverse=True,
    )
    parts = [
        f"{counted(state.total, 'client')}; questions {per}: {', '.join(counts)}",
        f"memory: {'; '.join(memory)}",
        table_text(CLIENT_COLUMNS, [client_row(each) for each in state.clients]),
    ]
    if state.unknown:
        parts.append(printable(f"no questions: {state.unknown}"))
    else:
        parts += [
            table_text(
                [f"asked {per}", "namespace"], [[f"{count:.0f}", name] for count, name in namespaces[:_ROWS]]
            ),
            table_text(
                [f"asked {per}", "namespace", "mode", "pattern", "properties"],
                [[f"{count:.0f}", *question] for count, question in questions[:_ROWS]],
            ),
        ]
    calls = [
        [plugin["name"], hook, each["calls"], each["answers"].get("error", 0), each["p50_ms"], each["p99_ms"]]
        for plugin in state.plugins
        for hook, each in plugin.get("calls", {}).items()
    ]
    if calls:
        parts.append(table_text(["plugin", "hook", "calls", "errors", "p50 ms", "p99 ms"], calls))
    return "\n".join(parts).split("\n")


def _question(each: Mapping[str, Any]) -> tuple[str, str, str, str]:
    properties = " ".join(f"{key}={value}" for key, value in sorted(each["properties"].items()))
    return each["namespace"], each["mode"], each["pattern"] or "", properties


def _size(size: float) -> str:
    return f"{size / 1024**2:.1f} MiB" if size else ""
