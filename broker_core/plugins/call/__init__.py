"""Calling a plugin's functions so that none can harm the broker: deadlines, threads, circuit breaker."""
