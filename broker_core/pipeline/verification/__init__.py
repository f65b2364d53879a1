"""Checking the answers of listers and describers before use: names, pages, details, claims."""
