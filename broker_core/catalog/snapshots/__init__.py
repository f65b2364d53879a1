"""Namespaces of the catalogue in memory."""
