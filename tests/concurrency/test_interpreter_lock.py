"""A waiting thread gets the interpreter's lock, even if another thread asks for it again and again."""

from __future__ import annotations

import sys
import threading
import time

import re2

from broker_core.concurrency.cpu_threads import pass_lock_on


def test_who_waits_gets_a_turn_between_pieces_of_work() -> None:
    """Without it, one thread that compiles again and again keeps the others out until it has ended.

    Here the interpreter takes the lock from nobody; on a slow machine more pieces pass until the other one is awake.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 512 * 1024
    pieces = turns = 0
    stop = threading.Event()

    def work() -> None:
        nonlocal pieces
        while not stop.is_set() and pieces < 5000:
            try:
                re2.compile(rf"(\pL|\pN){{100}}x{pieces}", options)
            except re2.error:
                pieces += 1
            pass_lock_on()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    working = threading.Thread(target=work)
    try:
        working.start()
        while turns < 50 and working.is_alive():
            time.sleep(0)  # as any call of the system, it lets go of the lock
            turns += working.is_alive()
            before = pieces
            while pieces == before and working.is_alive():  # what was waited for
                time.sleep(0)
    finally:
        stop.set()
        working.join()
        sys.setswitchinterval(interval)
    assert turns == 50
