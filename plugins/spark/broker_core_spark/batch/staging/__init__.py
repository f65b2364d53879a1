"""Staging: names on their way from a catalogue to segments, as sorted runs in the store."""
