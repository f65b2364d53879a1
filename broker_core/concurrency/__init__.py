"""Sharing one event loop and one interpreter fairly: turns, time on the loop, the interpreter's lock."""
