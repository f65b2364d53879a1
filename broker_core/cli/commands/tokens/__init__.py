"""`broker-core tokens ...`: keys and tokens of clients, in the files of ``pulsar tokens``."""
