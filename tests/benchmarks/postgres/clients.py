"""Many clients at once by PostgreSQL's own pgbench, with the SQL that broker-core sends."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core_postgres.listing.listing_sql import RowSource, first_page_statement
from broker_core_postgres.listing.row_conditions import make_row_conditions
from tests.benchmarks.measure import Rate, percentile
from tests.benchmarks.postgres.database import Filled

__all__ = ["pgbench"]

#: Seconds after which pgbench has failed if it has finished no transaction.
_LONGEST: Final = 60

_MOST_BYTES: Final = 16 * 1024 * 1024
#: The prefix of a line and the first text behind it, of a random line, as SQL makes them.
_LINE: Final = (
    "'plant-' || lpad((:line / 31)::text, 3, '0') || '-line-' || lpad((:line)::text, 4, '0') || '{end}'"
)


def pgbench(filled: Filled, *, clients: int, budget: float) -> Rate:
    """The statement that the plugin sends for a prefix of 1,000 topics, prepared, by as many sessions."""
    server = filled.database.server
    devices = filled.devices
    with tempfile.TemporaryDirectory(prefix="pgbench-") as text:
        folder = Path(text)
        script = folder / "prefix.sql"
        script.write_text(f"\\set line random(0, {devices.lines - 1})\n{_statement(filled)};\n")
        command = [
            str(server.programs / "pgbench"),
            "--no-vacuum",
            "--protocol=prepared",
            f"--client={clients}",
        ]
        command += ["--jobs=2", "--log", f"--log-prefix={folder}/log", f"--file={script}"]
        seconds = max(1, round(budget))
        while True:
            done = subprocess.run(
                [*command, f"--time={seconds}", filled.database.dsn],
                # Bytes that are ASCII take one byte each then, as they do in the binary format that asyncpg reads.
                env={**os.environ, "PGOPTIONS": "-c bytea_output=escape"},
                capture_output=True,
                text=True,
                check=False,
            )
            rate = re.search(r"tps = ([0-9.]+) \(without", done.stdout)
            if rate is not None and done.returncode == 0:
                break
            if done.returncode != 0 or seconds > _LONGEST:
                raise RuntimeError(f"pgbench: {done.stdout[-500:]} {done.stderr[-2000:]}")
            seconds *= 4  # a busy machine has finished none
        logs = folder.glob("log*")
        micros = [float(line.split()[2]) for log in logs for line in log.read_text().splitlines()]
    return Rate(float(rate[1]), percentile(micros, 0.5) / 1e6, percentile(micros, 0.99) / 1e6)


def _statement(filled: Filled) -> str:
    """The plugin's own SQL with the parameters that pgbench makes up."""
    devices = filled.devices
    pattern = compile_pattern(devices.begins_with(devices.line_prefix(0)))
    row_conditions = make_row_conditions(NamespaceName.parse(devices.namespace), Mode.PERSISTENT, pattern)
    statement = first_page_statement(row_conditions, RowSource(), _MOST_BYTES)
    low, high = row_conditions.bounds[0]
    made = {
        low: "(" + _LINE.format(end="-") + ")",
        high: "(" + _LINE.format(end=".") + ")",  # the character behind "-"
    }
    text = statement.text
    for number, value in reversed(list(enumerate(statement.arguments, 1))):
        constant = f"'{value}'" if isinstance(value, str) else str(value)
        text = text.replace(f"${number}::", f"{made.get(value, constant)}::")
    return text.replace("\n", " ")
