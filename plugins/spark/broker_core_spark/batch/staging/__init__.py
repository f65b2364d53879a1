"""Names on their way from a catalogue to segments: sorted runs in the store."""
