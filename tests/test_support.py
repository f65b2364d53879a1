"""Tests of the tests' own helpers."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import left_behind
from tests.support.distributions import ROOT
from tests.support.eventually import eventually, eventually_sync, turns
from tests.support.forked_programs import ForkServer
from tests.support.left_behind import Running
from tests.support.one_test import in_one_test
from tests.support.ports import free_port, free_ports, ports_in_a_row
from tests.support.scripted_kafka import ScriptedKafka
from tests.support.scripted_server import ScriptedServer
from tests.support.vectors import frames, pattern_vectors


async def test_eventually_names_what_did_not_happen() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.01 s: the queue is empty"):
        await eventually(lambda: False, timeout=0.01, what="the queue is empty")


async def test_eventually_ends_an_async_condition_that_hangs() -> None:
    async def hangs() -> bool:
        return await asyncio.Event().wait()

    with pytest.raises(AssertionError, match=r"not within 0\.01 s: hangs"):
        await eventually(hangs, timeout=0.01)


async def test_eventually_raises_the_last_assertion() -> None:
    def condition() -> bool:
        raise AssertionError("two topics, not three")

    with pytest.raises(AssertionError, match="two topics, not three"):
        await eventually(condition, timeout=0.01)


def test_eventually_sync() -> None:
    answers = iter([False, True])
    assert eventually_sync(lambda: next(answers)) is True
    with pytest.raises(AssertionError, match="not within"):
        eventually_sync(lambda: False, timeout=0.01)


async def test_the_loops_of_tests_refuse_calls_of_other_threads_and_note_no_stacks() -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(RuntimeError, match="Non-thread-safe"):
        await asyncio.to_thread(loop.call_soon, print)
    handle = loop.call_soon(int)
    assert getattr(handle, "_source_traceback", None) is None


def test_free_ports_differ_and_can_be_bound() -> None:
    first, second = ports_in_a_row(2)
    assert second == first + 1
    ports = [first, second, *free_ports(5)]
    assert len(set(ports)) == 7
    for port in ports:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))


@pytest.mark.parametrize("kind", [ScriptedServer, ScriptedKafka])
async def test_a_client_that_comes_as_a_scripted_server_stops_leaves_no_task(
    kind: type[ScriptedServer | ScriptedKafka],
) -> None:
    for count in range(6):
        async with kind() as server:
            client = socket.create_connection(("127.0.0.1", server.port))
            await turns(count)
        await turns()
        assert asyncio.all_tasks() == {asyncio.current_task()}, count
        client.close()


def test_a_port_is_given_to_one_process_alone() -> None:
    """Also before its server listens, and while it is to be away."""
    port = free_port()
    code = f"from tests.support.ports import _is_free; print(_is_free({port}))"
    asked = [sys.executable, "-c", code]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_vectors_are_whole() -> None:
    vectors = pattern_vectors()
    assert len(vectors["cases"]) == 287
    assert len(vectors["stored_names"]) == 91
    for client in ("java", "go", "python"):
        assert any("hex" in frame for frame in frames(client))


def test_a_thread_and_a_process_that_stay_are_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_behind, "_PATIENCE", 0.0)
    before = Running()
    stays = threading.Event()
    threading.Thread(target=stays.wait, name="a server").start()
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        # A process has the command line of its parent until it has its own.
        found = eventually_sync(
            lambda: [each for each in before.left() if "a server" in each or "input()" in each][1:]
        )
        assert found[0].startswith(f"the process {process.pid}: ")
        assert max(before.left()) == "the thread a server"
        assert Running().left() == []
    finally:
        stays.set()
        process.communicate(b"\n")
    monkeypatch.setattr(left_behind, "_PATIENCE", 30.0)
    assert before.left() == []


async def _leaves_tasks() -> None:
    """One that waits, and one that would end at its next turn."""
    asyncio.get_running_loop().create_task(asyncio.Event().wait(), name="waits")
    asyncio.get_running_loop().create_task(asyncio.sleep(0), name="ends")


def test_a_task_that_its_loop_cancels_is_left_behind() -> None:
    before = Running()
    with asyncio.Runner() as runner:
        runner.run(_leaves_tasks())
        runner.run(asyncio.sleep(0))
    left = before.left()
    assert len(left) == 1
    assert "name='waits'" in left[0]
    assert before.left() == []


def test_what_is_of_the_whole_run_is_not_left_behind() -> None:
    stays = threading.Event()
    before = Running()
    thread = threading.Thread(target=stays.wait)
    thread.start()
    try:
        before.lasts()
        assert before.left() == []
    finally:
        stays.set()
        thread.join()


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    with ForkServer(Path(sys.executable)) as server:
        yield server


def test_a_forked_program_says_and_ends_as_the_program_itself(forked: ForkServer, tmp_path: Path) -> None:
    own = Path(sys.executable).parent / "broker-core"
    for command in (
        ["--version"],
        ["tokens", "validate", "-"],
        ["postgres", "nope"],
    ):
        done = [
            subprocess.run([program, *command], input=b"x", capture_output=True, cwd=tmp_path, check=False)
            for program in (own, forked.write_program(tmp_path, "broker-core"))
        ]
        assert (done[0].returncode, done[0].stdout, done[0].stderr) == (
            done[1].returncode,
            done[1].stdout,
            done[1].stderr,
        )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)])
def test_a_forked_server_gets_signals_and_ends_with_its_caller(
    forked: ForkServer, tmp_path: Path, number: int, code: int
) -> None:
    command: list[str | Path] = [
        forked.write_program(tmp_path, "broker-core"),
        "serve",
        "--pulsar",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--catalog",
        "c.sqlite",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        ready = process.stdout.readline().decode()
        port = int(ready.split()[1].rpartition(":")[2])
        process.send_signal(number)
        assert process.wait(60) == code
    eventually_sync(lambda: _refused(port), what="the forked server has ended too")


def test_a_forked_python_runs_what_python_runs(forked: ForkServer, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "found.py").write_text("found = 'found'\n", encoding="utf-8")
    (tmp_path / "beside.py").write_text("def said():\n    return 'beside'\n", encoding="utf-8")
    text = "import sys, beside, found; print(beside.said(), found.found, __name__, sys.argv, sys.path[0])"
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    warning = "import warnings; warnings.warn('old'); print('after')"
    for arguments, given in (
        (["-"], text),
        (["-W", "error", "-c", text, "a"], ""),
        (["program.py", "a", "-b"], ""),
        (["-m", "program", "--", "a"], ""),
        (["-W", "error", "-"], warning),
        (["-c", warning], ""),
        (["-c", "raise SystemExit(3)"], ""),
    ):
        own, other = (
            subprocess.run(
                [program, *arguments],
                input=given,
                capture_output=True,
                text=True,
                cwd=tmp_path,
                check=False,
                env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
            )
            for program in (sys.executable, forked.write_program(programs, "python"))
        )
        assert (own.returncode, own.stdout) == (other.returncode, other.stdout), arguments
        assert own.stderr.splitlines()[-2:] == other.stderr.splitlines()[-2:]


def test_a_python_of_other_variables_is_started_by_itself(forked: ForkServer, tmp_path: Path) -> None:
    python = forked.write_program(tmp_path, "python")
    for variables, imported in (({}, "True\n"), ({"PYTHONWARNINGS": "error::UserWarning"}, "False\n")):
        done = subprocess.run(
            [python, "-c", "import sys; print('broker_core' in sys.modules)"],
            capture_output=True,
            text=True,
            env=os.environ | variables,
            check=True,
        )
        assert done.stdout == imported


def _refused(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) != 0


def test_the_rows_of_one_test_are_all_tried_and_those_that_fail_are_named() -> None:
    tried = []

    @in_one_test("number, square", [(1, 1), (2, 5), (3, 9), (4, 15)])
    def square(number: int, square: int) -> None:
        tried.append(number)
        if number**2 != square:
            pytest.fail("other")

    with pytest.raises(BaseExceptionGroup, match="2 of 4 rows") as failure:
        square()
    assert tried == [1, 2, 3, 4]
    assert [error.__notes__ for error in failure.value.exceptions] == [
        ["with {'number': 2, 'square': 5}"],
        ["with {'number': 4, 'square': 15}"],
    ]
