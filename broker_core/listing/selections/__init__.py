"""Selections of a listing: search in them, filters, differences, and their rows by domain."""
