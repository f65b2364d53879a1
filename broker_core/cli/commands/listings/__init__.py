"""The commands that list topics: of a server, or without one and with the effect of each step."""
