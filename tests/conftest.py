"""Fixtures for all tests."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from broker_core.concurrency import loop_turns
from tests.support.examples import load_profile
from tests.support.forked_run import ForkedRun
from tests.support.fresh_environment import built_distributions
from tests.support.left_behind import Running, note_cancelled_tasks
from tests.support.quick_debug_mode import note_no_stacks
from tests.support.quick_files import keep_files_in_memory
from tests.support.quick_java import quick_java_options
from tests.support.shared_caches import make_caches
from tests.support.unit_tests import is_unit_tests, turn_of_tests

note_no_stacks()
note_cancelled_tasks()
keep_files_in_memory()
# Rich draws a traceback that is logged, with the lines around each of its own, for half a second.
structlog.get_config()["processors"][-1].exception_formatter = structlog.dev.plain_traceback
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell without job control starts `make test &`: all programs that the tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:
    from tests.support.shared_start import StartBesideCollection

ROOT = Path(__file__).parent.parent
#: The folder of the run with what is built of this repository.
_DISTRIBUTIONS = "distributions"
_BEGUN: pytest.StashKey[StartBesideCollection] = pytest.StashKey()
#: Imported by those tests alone that have a gateway in their process.
_LIVE_SNAPSHOTS = "broker_core.upstream.snapshots.live_snapshots"

os.environ["SPARK_SUBMIT_OPTS"] = quick_java_options()
# Nothing here multiplies matrices, and each process that imports numpy would start threads for it.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# No setting of the developer's shell reaches a test, nor the debug mode of loops a server that a test starts.
for name in [name for name in os.environ if name.startswith("BROKER_CORE_") or name == "PYTHONASYNCIODEBUG"]:
    del os.environ[name]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--unit", action="store_true", help="tests that start no program and no server")
    parser.addoption("--processes", type=int, default=0, help="run tests in so many processes, file by file")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("--unit") and collection_path.suffix == ".py":
        return True if not is_unit_tests(collection_path, ROOT / "tests") else None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: turn_of_tests(item.path, ROOT / "tests"))


def pytest_collection(session: pytest.Session) -> None:
    gc.disable()  # nearly all that is made stays
    config = session.config
    make_caches(config, config.option.processes)
    # Files that are named may need nothing of it, and its driver is not for runs of units.
    if config.option.processes and not (
        _names_files(config) or config.option.unit or config.option.collectonly
    ):
        from tests.support.shared_start import StartBesideCollection

        base = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        config.stash[_BEGUN] = begun = StartBesideCollection(base / _DISTRIBUTIONS)
        config.add_cleanup(begun.close)


def _names_files(config: pytest.Config) -> bool:
    return config.args_source is pytest.Config.ArgsSource.ARGS


def pytest_collection_finish(session: pytest.Session) -> None:
    options = session.config.option
    if (begun := session.config.stash.get(_BEGUN, None)) is not None:
        begun.join_thread()
    elif options.processes and not options.collectonly:
        if not all(is_unit_tests(file, ROOT / "tests") for file in {item.path for item in session.items}):
            from tests.support.shared_start import start_shared

            start_shared()
    _freeze()
    gc.set_threshold(10_000, 10, 10)  # as a server sets it when it has started
    gc.enable()


def _freeze() -> None:
    """What is there stays: the garbage collector need not look at it each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _as_the_file_needs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Quick collections for tests that collect garbage many times, turns of the event loop that have time, and gateways
    that list a namespace again soon.

    A turn has time however slow the machine is, except in a file that tests this time. All are of a file, not of a
    test: pytest takes a tenth of a millisecond for each fixture of each of thousands of tests.
    """
    if hasattr(request.module, "gc"):
        _freeze()
    with pytest.MonkeyPatch.context() as patch:
        if not hasattr(request.module, "TURN_SECONDS"):
            patch.setattr(loop_turns, "TURN_SECONDS", 3600.0)
        if _LIVE_SNAPSHOTS in sys.modules:
            patch.setattr(sys.modules[_LIVE_SNAPSHOTS], "_PAUSE", 0.05)
        yield


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """Commands configure the logs of their process, which here is that of all tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """The tests of a file leave no thread, no task and no process to those of the next one.

    Scenes with real brokers start servers of the whole run again, and so are left out.
    """
    before = Running()
    yield
    if request.node.get_closest_marker("interop") is not None:
        return
    left = before.left()
    assert not left, f"the tests of this file leave behind: {left}"


class _FixturesOfTheRun:
    """A plugin, since the hooks of a conftest below the root hear nothing of fixtures of the whole run."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """A server of the whole run is made when the first file asks for it, in the midst of its tests."""
        before = Running() if fixturedef.scope == "session" else None
        result = yield
        if before is not None:
            before.lasts()
        return result


def pytest_configure(config: pytest.Config) -> None:
    load_profile(units=config.option.unit)
    config.pluginmanager.register(_FixturesOfTheRun())
    if processes := config.getoption("--processes"):
        config.pluginmanager.register(ForkedRun(processes))


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the source tree."""
    return ROOT


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheels and the source distributions of broker-core and its plugins; the processes of a run share them."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith(("process-", "popen-")) else base
    return built_distributions(shared / _DISTRIBUTIONS)


@pytest.fixture(scope="session")
def wheels(distributions: list[Path]) -> list[Path]:
    return [path for path in distributions if path.suffix == ".whl"]
