"""Memory that requests hold: permits, leases, estimates, bounded caches, freeing off the event loop."""
