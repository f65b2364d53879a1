"""Run of tests by processes that are forked from one that has collected them all: ``pytest --processes 4``.

Each worker of pytest-xdist collects all tests for itself, which takes ten seconds of a processor and more. A process
takes file by file, when it begins the last test of the one before, and files that share a start as if they were one. If
it dies, its test has failed, and another process takes the rest of its file.
"""

from __future__ import annotations

import atexit
import mmap
import os
import sys
import uuid
import warnings
from collections import deque
from itertools import groupby
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.unit_tests import shared_start_of

__all__ = ["ForkedRun", "seed_of_the_run"]

_FORK: Final = get_context("fork")
_SEED: Final = "SEED_OF_THE_RUN"
#: The thread of jemalloc, which sees to its own in a process that is forked.
_OF_ALLOCATOR: Final = "jemalloc_bg_thd\n"
#: Seconds that a process may take to end when it is to take no further test.
_PATIENCE: Final = 20.0


def seed_of_the_run() -> str:
    """What tests draw their random values by; another one for each run."""
    return os.environ.setdefault(_SEED, uuid.uuid4().hex)


class _Reports:
    """Plugin of a process that runs tests: what it reports goes to the process that has collected them.

    What is said of a test goes with the start of the next one, since each message wakes the process that listens.
    """

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection
        self._messages: list[tuple[str, dict[str, Any]]] = []

    def send(self, hook: str, **given: object) -> None:
        """Send what has been reported, and this."""
        self._connection.send([*self._messages, (hook, given)])
        self._messages.clear()

    def tests_of_next_file(self) -> list[int]:
        """The places of the tests of a file that is to be run next."""
        self.send("next")
        return self._connection.recv() or []

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self.send(
            "pytest_runtest_logstart", nodeid=nodeid, location=location
        )  # at once: it may die of this test

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._messages.append(("pytest_runtest_logreport", {"report": data}))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._messages.append(("pytest_runtest_logfinish", {"nodeid": nodeid, "location": location}))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        said = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self._messages.append(("pytest_warning_recorded", said))


class _Worker:
    """A process that runs tests, as the process that has collected them knows it."""

    def __init__(self, run: ForkedRun, session: pytest.Session, number: int) -> None:
        self.connection, its = Pipe()
        self.process = _FORK.Process(target=run.work, args=(session, its, number))
        self.process.start()
        its.close()
        #: The places of the tests that it has been given and has not run.
        self.tests: deque[int] = deque()
        self.began: int | None = None
        self.done = False


class ForkedRun:
    """The plugin of the process that has collected the tests."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._started = 0
        self._files: deque[list[int]] = deque()
        self._workers: dict[Any, _Worker] = {}
        self._ends = mmap.mmap(-1, 1)  # shared by all processes: whether they take no further test

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Give out the files in their order; ``None``, for the loop of pytest, if no test is to be run."""
        if session.config.option.collectonly or session.testsfailed or not session.items:
            return None
        threads = {
            (thread / "comm").read_text()
            for thread in Path("/proc/self/task").iterdir()
            if thread.name != str(os.getpid())
        }
        assert threads <= {_OF_ALLOCATOR}, f"no process would have the threads of imported modules: {threads}"
        places = range(len(session.items))
        self._files.extend(
            list(tests) for _, tests in groupby(places, lambda place: _file(session.items[place]))
        )
        seed_of_the_run()
        reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        reporter.showfspath = False  # tests of several files end in turns
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        try:
            for _ in range(min(self._processes, len(self._files))):
                self._start(session)
            while self._workers:
                for connection in wait(list(self._workers)):
                    self._hear(session, self._workers[connection])
                if session.shouldfail or session.shouldstop:
                    self._ends[0] = 1
        finally:
            self._ends[0] = 1
            for worker in self._workers.values():
                worker.connection.close()
                worker.process.join(_PATIENCE)
                worker.process.terminate()
                worker.process.join()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _start(self, session: pytest.Session) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        worker = _Worker(self, session, self._started)
        self._started += 1
        self._workers[worker.connection] = worker

    def _hear(self, session: pytest.Session, worker: _Worker) -> None:
        """Do what messages of a process ask for, or what its end does."""
        try:
            messages = worker.connection.recv()
        except (EOFError, OSError):
            del self._workers[worker.connection]
            worker.process.join()
            if not worker.done or worker.process.exitcode:
                self._note_death(session, worker)
            return
        for hook, given in messages:
            self._take(session, worker, hook, given)

    def _take(self, session: pytest.Session, worker: _Worker, hook: str, given: dict[str, Any]) -> None:
        if hook == "done":
            worker.done = True
        elif hook == "next":
            file = self._files.popleft() if self._files and not self._ends[0] else None
            worker.tests.extend(file or ())
            worker.connection.send(file)
        elif hook == "pytest_warning_recorded":
            session.config.hook.pytest_warning_recorded.call_historic(kwargs=given)
        else:
            if hook == "pytest_runtest_logstart":
                worker.began = worker.tests.popleft()
            elif hook == "pytest_runtest_logreport":
                given["report"] = session.config.hook.pytest_report_from_serializable(
                    config=session.config, data=given["report"]
                )
            getattr(session.config.hook, hook)(**given)

    def _note_death(self, session: pytest.Session, worker: _Worker) -> None:
        code = worker.process.exitcode
        if worker.began is None:
            raise RuntimeError(f"a process of the run ended with {code} before its first test")
        item = session.items[worker.began]
        report = pytest.TestReport(
            item.nodeid, item.location, {}, "failed", f"the process of this test ended with {code}", "call"
        )
        session.config.hook.pytest_runtest_logreport(report=report)
        if worker.tests:
            self._files.appendleft(list(worker.tests))
        if self._files and not self._ends[0]:
            self._start(session)

    def work(self, session: pytest.Session, connection: Connection, number: int) -> None:
        """Run tests in a process of their own until there are no more."""
        atexit._clear()  # what has been registered belongs to the process that has collected
        for other in self._workers.values():
            other.connection.close()
        config = session.config
        capture: Any = config.pluginmanager.get_plugin("capturemanager")
        capture.stop_global_capturing()  # the files of which all processes would share
        capture.start_global_capturing()
        capture.suspend_global_capture()
        factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = factory.getbasetemp() / f"process-{number}"
        factory._basetemp.mkdir(mode=0o700)
        config.pluginmanager.unregister(name="terminalreporter")
        reports = _Reports(config, connection)
        config.pluginmanager.register(reports)
        tests: deque[int] = deque(reports.tests_of_next_file())
        while tests and not (self._ends[0] or session.shouldfail or session.shouldstop):
            item = session.items[tests.popleft()]
            if not tests:
                tests.extend(reports.tests_of_next_file())
            following = session.items[tests[0]] if tests else None
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        session._setupstate.teardown_exact(None)
        atexit._run_exitfuncs()
        capture.stop_global_capturing()
        reports.send("done")


def _file(item: pytest.Item) -> str:
    return shared_start_of(item.path) or item.nodeid.partition("::")[0]
