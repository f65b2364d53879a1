"""Kafka's clients as programs: each does its cases at a server, and says the result of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tests.interop.foreign import node_modules, python_of
from tests.interop.java_programs import JavaProgram, java_program
from tests.interop.kafka_clients.python.case_lines import Server, normal
from tests.interop.kafka_peer import kafka_jars

__all__ = [
    "CLIENTS",
    "DIFFERENT",
    "canonical",
    "cases",
    "differences",
    "java_properties",
    "kafka_program",
    "kafka_tools",
]

_HERE: Final = Path(__file__).resolve().parent / "kafka_clients"
_ROOT: Final = _HERE.parents[2]
#: Seconds for all cases of a client.
_LONGEST: Final = 600.0

#: Each client's name, and the language and the file of its program.
CLIENTS: Final[Mapping[str, tuple[str, str]]] = {
    "raw": ("tests", "raw_cases.py"),
    "kafka-python": ("tests", "kafka_python_cases.py"),
    "kafka-python-2": ("kafka_python_2.txt", "kafka_python_2_cases.py"),
    "confluent-kafka": ("clients.txt", "confluent_cases.py"),
    "aiokafka": ("clients.txt", "aiokafka_cases.py"),
    "java": ("java", "AdminCases.java"),
    "tools": ("java", "ToolCases.java"),
    "kafkajs": ("node", "kafkajs_cases.mjs"),
    "platformatic": ("node", "platformatic_cases.mjs"),
}

_APIS: Final = "This server has fewer APIs, and KIP-142's; those that both have are of the same versions."
_OVERFLOW: Final = (
    "The partition of a cursor plus the limit is 2^31 or more: Kafka's sum overflows, and has no next page."
)
#: What is different here of 370 results, and why; no code, no id and no order of checks is.
DIFFERENT: Final[Mapping[tuple[str, str], str]] = {
    ("raw", "v/api_versions_v0"): _APIS,
    ("raw", "v/api_versions_v1"): _APIS,
    ("raw", "v/api_versions_v2"): _APIS,
    ("raw", "v/api_versions_v3"): _APIS,
    ("raw", "v/api_versions_v4"): _APIS,
    ("raw", "pages_cursor_max_int"): _OVERFLOW,
    ("raw", "pages_cursor_max_int_minus_1_all"): _OVERFLOW,
}


def cases(client: str, server: Server, folder: Path) -> dict[str, dict[str, Any]]:
    """What each case of a client came to: ``result``, and ``seconds`` if the program measures them.

    ``folder`` takes the files that the program needs, and its log.
    Raises :exc:`~tests.interop.maven.PeerUnavailable` if the client is not available.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    log = folder / f"{client}.log"
    with log.open("wb") as errors:
        done = subprocess.run(
            _command(client, server, folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            timeout=_LONGEST,
            env=environment,
            check=False,
        )
    if done.returncode != 0:
        raise AssertionError(
            f"{client} ended with {done.returncode}: {log.read_text(errors='replace')[-4000:]}"
        )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return {row.pop("case"): row | {"result": normal(row["result"])} for row in rows}


def _command(client: str, server: Server, folder: Path) -> list[str]:
    kind, file = CLIENTS[client]
    if kind == "java":
        program = kafka_program(_HERE / "java" / ("DataCases.java" if server.data else file))
        command = [*program, str(java_properties(server, folder))]
        return command if server.data else [*command, str(int(server.settle * 1000))]
    if kind == "node":
        modules = node_modules(_HERE / "node")
        # Modules are looked for beside the program.
        for source in sorted((_HERE / "node").glob("*.mjs")):
            (modules / source.name).write_bytes(source.read_bytes())
        return ["node", str(modules / file), json.dumps(asdict(server))]
    python = sys.executable if kind == "tests" else str(python_of(_HERE / "python" / kind))
    return [python, str(_HERE / "python" / file), json.dumps(asdict(server))]


def kafka_program(source: Path) -> list[str]:
    """What runs the Java program of a source file with Kafka's jars."""
    logging = _HERE.parent / "java" / "log4j2.xml"
    return java_program(source, kafka_jars(), "-Xmx256m", f"-Dlog4j2.configurationFile={logging}")


@contextmanager
def kafka_tools() -> Iterator[Callable[..., list[str]]]:
    """Runs tools by their classes, one after the other in one JVM; gives the lines that a tool has printed."""
    with JavaProgram.running(kafka_program(_HERE / "java" / "ToolCases.java")) as program:

        def run(name: str, *arguments: str) -> list[str]:
            done = program.ask({"main": name, "arguments": arguments})
            assert done["exit"] == 0, done
            lines: list[str] = done["said"]
            return lines

        yield run


def java_properties(server: Server, folder: Path) -> Path:
    """The file of properties of a client in Java."""
    lines = {
        "bootstrap.servers": server.bootstrap,
        "client.id": "java",
        "security.protocol": server.protocol,
        "request.timeout.ms": "10000",
        "default.api.timeout.ms": "10000",
    }
    if server.mechanism:
        module = "plain.Plain" if server.mechanism == "PLAIN" else "scram.Scram"
        lines["sasl.mechanism"] = server.mechanism
        lines["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module}LoginModule required "
            f'username="{server.user}" password="{server.password}";'
        )
    if server.ca:
        lines |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": server.ca}
    path = folder / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return path


def canonical(case: str, value: Any) -> Any:
    """For comparing: Kafka promises no order of rows, except in pages."""
    if isinstance(value, dict):
        return {key: canonical(case, each) for key, each in value.items()}
    if isinstance(value, list):
        rows = [canonical(case, each) for each in value]
        return rows if "pages" in case else sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
    return value


def differences(
    expected: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[Any, Any]]:
    """The cases whose results are not those of a real broker: what it answers, and what was found."""
    assert list(found) == list(expected), "the program did other cases than the recorded ones"
    plain = {case: json.loads(json.dumps(row["result"])) for case, row in found.items()}
    return {
        case: (expected[case], plain[case])
        for case in expected
        if canonical(case, expected[case]) != canonical(case, plain[case])
    }
