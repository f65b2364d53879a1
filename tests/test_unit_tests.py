from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.unit_tests import is_unit_tests, turn_of_tests

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    "file",
    ["names/test_mode.py", "listing/fields/test_topic_field.py", "test_tree.py", "settings/test_load.py"],
)
def test_units(file: str) -> None:
    assert is_unit_tests(TESTS / file, TESTS)


@pytest.mark.parametrize(
    "file",
    [
        "postgres/test_plugin.py",
        "spark/test_plugin.py",
        "cli/server_process/test_server_process.py",
        "cli/server_process/test_hangups.py",
        "cli/test_start.py",
        "test_wheels.py",
        "broker/test_broker.py",
        "testing/test_server.py",
        "servers/pulsar/test_server.py",
        "servers/http/conformance/test_openapi_conformance.py",
        "servers/http/hostile/test_hostile_requests.py",
    ],
)
def test_what_starts_programs_and_servers(file: str) -> None:
    assert not is_unit_tests(TESTS / file, TESTS)


def test_the_longest_files_come_first_and_units_last() -> None:
    files = [
        "names/test_mode.py",
        "docs/test_docs_run_spark.py",
        "broker/test_broker.py",
        "docs/test_docs_cli.py",
    ]
    files += ["spark/test_plugin.py", "spark/batch/test_job.py", "interop/test_watch_steps.py"]
    assert sorted(files, key=lambda file: turn_of_tests(TESTS / file, TESTS)) == [
        "spark/batch/test_job.py",
        "docs/test_docs_run_spark.py",
        "interop/test_watch_steps.py",
        "docs/test_docs_cli.py",
        "broker/test_broker.py",
        "spark/test_plugin.py",
        "names/test_mode.py",
    ]
