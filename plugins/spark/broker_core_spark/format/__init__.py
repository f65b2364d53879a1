"""The files of a generation: written by a batch, verified and mapped by a broker. Specified in the reference."""
