"""A waiting thread gets the interpreter's lock, even if another thread asks for it again and again."""

from __future__ import annotations

import threading
import time

import re2

from broker_core.concurrency.interpreter_lock import pass_lock_on


def test_who_waits_gets_a_turn_between_pieces_of_work() -> None:
    """Without it, one thread that compiles again and again keeps the others out until it has ended."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 512 * 1024
    pieces = turns = 0
    stop = threading.Event()

    def work() -> None:
        nonlocal pieces
        while not stop.is_set():
            try:
                re2.compile(rf"(\pL|\pN){{100}}x{pieces}", options)
            except re2.error:
                pieces += 1
            pass_lock_on()

    working = threading.Thread(target=work)
    working.start()
    try:
        while turns < 50:
            time.sleep(0)  # as any call of the system, it lets go of the lock
            turns += 1
            before = pieces
            while pieces == before:  # what was waited for
                time.sleep(0)
    finally:
        stop.set()
        working.join()
    assert pieces < 3 * turns
