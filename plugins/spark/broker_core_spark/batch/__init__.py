"""The batch: a catalogue and many patterns in, one verified generation out.

Nothing of it is imported by a broker that serves generations; PySpark is imported by the functions that need it.
"""
