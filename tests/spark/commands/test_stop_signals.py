"""The first signal ends a command in order, with one line and the exit code of shells."""

from __future__ import annotations

import logging
import signal
import sys
import threading

import pytest
import typer

from broker_core_spark.commands.stop_signals import Stopped, ended_by_signals

BOTH = (signal.SIGTERM, signal.SIGINT)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_one_line_after_the_end_in_order(
    capsys: pytest.CaptureFixture[str], number: signal.Signals, code: int
) -> None:
    before = [signal.getsignal(each) for each in BOTH]
    done: list[str] = []
    with (
        pytest.raises(typer.Exit) as ended,
        ended_by_signals("gc", lambda: "no harm", cleanup=lambda: done.append("cleanup")),
    ):
        try:
            signal.raise_signal(number)
        except Exception:  # noqa: BLE001 - what a batch does with errors of Spark
            pytest.fail("a signal is no error")
        finally:
            signal.raise_signal(signal.SIGTERM)  # which does nothing any more
            done.append("inside")
    assert ended.value.exit_code == code
    assert done == ["inside", "cleanup"]
    assert capsys.readouterr().err == f"broker-core: gc: ended by {number.name}: no harm\n"
    assert [signal.getsignal(each) for each in BOTH] == before


def test_libraries_log_nothing_about_the_end(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(typer.Exit), ended_by_signals("gc"):
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            logging.getLogger("py4j").error("the JVM is gone")
    assert not caplog.records
    logging.getLogger("py4j").error("another one")
    assert len(caplog.records) == 1


def test_a_second_interrupt_ends_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), ended_by_signals("gc"):
        try:
            signal.raise_signal(signal.SIGTERM)
        except Stopped:
            signal.raise_signal(signal.SIGINT)


def test_a_signal_that_a_library_loses_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # pytest's keeps the exception

    class Closing:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)  # what is raised in a destructor is lost

    with pytest.raises(typer.Exit) as ended, ended_by_signals("gc"):
        closing = Closing()
        del closing
        assert not threading.Event().wait(60), "the signal did not come again"
    assert ended.value.exit_code == 143


def test_a_signal_that_a_shell_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ended_by_signals("gc"):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_have_no_signals() -> None:
    ran: list[bool] = []

    def run() -> None:
        with ended_by_signals("gc"):
            ran.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ran == [True]
