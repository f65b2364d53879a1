"""One client's connection, whatever its protocol: commands handled in turns, answers written as fast as they are read."""
