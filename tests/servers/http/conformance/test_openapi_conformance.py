"""The server answers as its OpenAPI document says: schemathesis asks it what the document allows, and what it does not.

``SCHEMATHESIS_EXAMPLES`` is how many requests are made of each operation besides those of its edges; 3. From 20 on, it
asks by chains of operations too, in which each takes what the one before has answered.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from structlog.testing import capture_logs

from tests.support.api_serving import ApiServed, api_served
from tests.support.distributions import ROOT
from tests.support.forked_programs import forked_program
from tests.support.htpasswd import write_htpasswd

HERE = Path(__file__).parent
EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "3"))
PHASES = "examples,coverage,fuzzing" + ",stateful" * (EXAMPLES >= 20)
#: Only who waits for ever waits so long, whatever else the machine does.
SECONDS = 3600


def secured(folder: Path) -> dict[str, Any]:
    users = folder / "users"
    write_htpasswd(users, somebody="secret")
    return {
        "authentication": {"methods": ["basic"], "basic": {"file": str(users)}},
        "authorization": {"super_roles": ["somebody"]},
    }


async def test_the_document_is_valid(tmp_path: Path) -> None:
    for tables in ({}, secured(tmp_path)):
        folder = tmp_path / str(len(tables))
        folder.mkdir()
        async with api_served(folder, **tables) as served:
            document = (await served.ask("/v1/openapi.json")).json
            assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


@pytest.mark.parametrize(
    ("authenticates", "options"),
    [
        pytest.param(False, ("--phases", PHASES), marks=pytest.mark.many),
        # Each request is repeated without credentials, and with wrong ones.
        (True, ("--phases", "examples", "--auth", "somebody:secret")),
    ],
    ids=["open", "with authentication"],
)
async def test_answers_are_those_of_the_document(
    tmp_path: Path, authenticates: bool, options: Sequence[str]
) -> None:
    with capture_logs() as logs:
        async with api_served(tmp_path, **(secured(tmp_path) if authenticates else {})) as served:
            await check(served, tmp_path, *options)
    assert [line for line in logs if line["log_level"] in {"error", "critical"}] == []


async def check(served: ApiServed, folder: Path, *options: str) -> None:
    """Let schemathesis ask; :exc:`AssertionError` with its whole output if an answer is wrong."""
    process = await asyncio.create_subprocess_exec(
        *(
            forked_program("python"),
            "-m",
            "schemathesis.cli",
            "--config-file",
            str(HERE / "schemathesis.toml"),
        ),
        # All checks, without `--checks all`: that would have more weight than what the file says of one operation.
        *("run", f"{served.url}/v1/openapi.json", "--seed", "14", "--no-color"),
        *("--max-examples", str(EXAMPLES), "--continue-on-failure", *options),
        cwd=folder,
        env=os.environ
        | {
            "SCHEMATHESIS_HOOKS": f"{__package__}.schemathesis_hooks",
            "PYTHONPATH": str(ROOT),
            # What Hypothesis has found out of Unicode and of the modules, which takes it some seconds.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis"),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(SECONDS):
            printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, printed.decode(errors="replace")
