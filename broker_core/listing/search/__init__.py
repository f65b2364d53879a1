"""Search in a listing: ranges of chunks, literals in their bytes, and RE2 over the rest."""
