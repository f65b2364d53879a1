"""`python -m tests.differential`: whether another source tree answers as this one does."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.differential.run import ROADS, Difference, run
from tests.differential.world import Side, World
from tests.support.distributions import ROOT

_SHOWN: Final = 1200
#: Settings of this tree that the other one does not have: without what they turn off, both have the same to say.
_OFF: Final[dict[str, dict[str, object]]] = {}


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask, print what differs, and end with 1 if anything does."""
    options = _options(arguments)
    sides = Side(ROOT, _OFF), Side(options.against.resolve())
    began = time.monotonic()
    shown = 0

    def show(difference: Difference) -> None:
        nonlocal shown
        shown += 1
        if shown <= options.show:
            first, second = difference.first, difference.second
            start = max(
                0, next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0) - 200
            )
            print(f"--- {difference.number}: {difference.request[:_SHOWN]}", flush=True)
            print(f"    this tree: {first[start : start + _SHOWN]!r}")
            print(f"    against:   {second[start : start + _SHOWN]!r}")

    with (
        tempfile.TemporaryDirectory(prefix="broker-core-differential-") as folder,
        World(Path(folder), sides, gateway=options.gateway).serving() as servers,
    ):
        result = asyncio.run(
            run(servers, options.requests, options.seed, only=options.only or tuple(ROADS), found=show)
        )
    seconds = time.monotonic() - began
    for fragment, count in result.named.most_common():
        print(f"named by changes/{fragment}: {count}")
    for road in ROADS:
        answers = {answer: count for (of, answer), count in result.answers.most_common() if of == road}
        print(f"{road}: {sum(answers.values())} requests; answers {answers}")
    print(
        f"seed {options.seed}, {seconds:.0f} s: {result.audited} audit lines, {len(result.differences)} differences"
    )
    if result.differences:
        sys.exit(1)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[2].strip())
    parser.add_argument("--against", type=Path, required=True, help="the other checkout, with its .venv")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=tuple(ROADS), help="these kinds of requests alone")
    parser.add_argument(
        "--gateway", action="store_true", help="both before a third server, of the other tree"
    )
    parser.add_argument("--show", type=int, default=40, help="differences to print at the most")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
