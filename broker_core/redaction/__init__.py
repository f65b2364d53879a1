"""Redaction of foreign text: without control characters, without secrets."""
