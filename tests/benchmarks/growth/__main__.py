"""`make bench-growth`: time and memory at ten thousand, a million and ten million topics, and with 50,000 namespaces.

`--against FOLDER` measures another source tree (a git worktree) too, in turns with this one, and gives the ratios. Both
run in this environment. Made catalogues are kept in a folder for temporary files, so that the next run is quick:
`--clean` removes them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.growth.catalogues import Catalogues, default_cache
from tests.benchmarks.growth.figures import PARTS
from tests.benchmarks.growth.measure_parts import measure
from tests.benchmarks.growth.report import draw, put_into_page, report
from tests.benchmarks.growth.trees import ROOT, BenchmarkFailed, Tree
from tests.benchmarks.processes import machine
from tests.benchmarks.progress import say

#: Questions about so many topics have answers of a known size.
_SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    options = _options(arguments)
    if options.clean:
        shutil.rmtree(options.cache, ignore_errors=True)
        return
    # So that its servers end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the benchmark was told to end"))
    trees = [Tree("this tree", ROOT)]
    if options.against is not None:
        trees.append(Tree("against", options.against.resolve()))
    failure = None
    results: dict[str, Any] = {
        "machine": machine(),
        "load_average": [os.getloadavg()],
        "trees": {tree.label: tree.commit() for tree in trees},
        "sizes": {},
        "namespaces": {},
    }
    try:
        for tree in trees:
            tree.check()
        with tempfile.TemporaryDirectory(prefix="broker-core-bench-") as work:
            measure(
                trees,
                Catalogues(options.cache, Path(work), say),
                options,
                results,
                say,
                lambda: _write(results, options.output),
            )
    except BenchmarkFailed as error:
        failure = f"the benchmark ended: {error}"
    results["load_average"].append(os.getloadavg())
    _write(results, options.output)
    options.output.with_suffix(".md").write_text(report(results, goals=False) + "\n")
    print(report(results))
    if options.plot is not None:
        draw(results, options.plot)
        print(options.plot)
    print(f"{options.output}, {options.output.with_suffix('.md')}")
    if options.page is not None and failure is None:
        put_into_page(results, options.page)
    if failure is not None:
        sys.exit(failure)


def _write(results: dict[str, Any], output: Path) -> None:
    output.write_text(json.dumps(results, indent=1) + "\n")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    environment = os.environ.get

    def sizes(text: str) -> list[int]:
        numbers = sorted(int(part.replace("_", "")) for part in text.split(","))
        if wrong := [number for number in numbers if number not in _SIZES]:
            raise argparse.ArgumentTypeError(
                f"{wrong[0]:,} is no power of ten from 10,000 to 10,000,000: its answers are not known"
            )
        return numbers

    def parts(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := set(chosen) - set(PARTS):
            raise argparse.ArgumentTypeError(f"no parts: {', '.join(sorted(unknown))}")
        return chosen

    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth", description=__doc__)
    parser.add_argument(
        "--sizes",
        type=sizes,
        default=sizes(environment("BENCH_GROWTH_SIZES", "10000,1000000,10000000")),
        help="powers of ten from 10,000 to 10,000,000; the last one takes 8 GB of memory and 5 GB of disk",
    )
    parser.add_argument(
        "--namespaces",
        type=int,
        default=int(environment("BENCH_GROWTH_NAMESPACES", "50000")),
        help="small namespaces of 20 topics",
    )
    parser.add_argument(
        "--parts", type=parts, default=list(PARTS), help=f"some of {','.join(PARTS)}, with commas"
    )
    parser.add_argument("--against", type=Path, help="the folder of another source tree")
    parser.add_argument("--rounds", type=int, default=int(environment("BENCH_GROWTH_ROUNDS", "1")))
    parser.add_argument("--repeats", type=int, default=25, help="of each change and page")
    parser.add_argument(
        "--random-changes", type=int, default=100_000, help="topics changed at random, a tenth of them alone"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="beside changes, and of slow readers")
    parser.add_argument("--plot", type=Path, help="an SVG of the growth")
    parser.add_argument(
        "--page", type=Path, help="a page of the documentation whose tables become those of this run"
    )
    parser.add_argument("--cache", type=Path, default=default_cache(), help="the folder of made catalogues")
    parser.add_argument("--clean", action="store_true", help="only remove the made catalogues")
    parser.add_argument(
        "--output", type=Path, default=Path(environment("BENCH_GROWTH_OUTPUT", "bench-growth.json"))
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
