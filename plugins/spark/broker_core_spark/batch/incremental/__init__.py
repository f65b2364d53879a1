"""Keeping segments of the last generation that would come out the same."""
