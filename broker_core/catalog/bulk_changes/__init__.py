"""Changes of many topics at once: deleting them, setting their properties."""
