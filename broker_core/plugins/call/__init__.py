"""Calling a plugin's functions so that none can hurt the broker: deadlines, threads, circuit breaker."""
