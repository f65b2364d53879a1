"""Memory that requests hold: permits, leases, estimates, bounded caches, and letting go of it."""
