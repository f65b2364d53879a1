"""Changing topics of the embedded catalogue over HTTP: one of them, or many."""
