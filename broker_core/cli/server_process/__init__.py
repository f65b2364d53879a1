"""The process of a server: start, signals, log, service manager, end."""
