"""libpq's rules of addresses and passwords."""
