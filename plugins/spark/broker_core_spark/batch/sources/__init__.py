"""Catalogues that a batch reads its topics from."""
