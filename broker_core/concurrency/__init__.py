"""Sharing one event loop and one interpreter fairly: turns, time on the loop, work in steps, the interpreter's lock."""
