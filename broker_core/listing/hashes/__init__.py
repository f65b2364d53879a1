"""Hashes of listings: the CRC-32C of sorted names, as Pulsar computes it, joined from the sums of parts."""
