"""The batch: builds a verified generation from a catalogue and many patterns.

Serving imports nothing of it. PySpark is imported by the functions that use it.
"""
