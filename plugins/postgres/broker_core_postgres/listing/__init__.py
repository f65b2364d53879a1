"""Listings from the database: which rows, their SQL, their pages, and the hash of the last answer."""
