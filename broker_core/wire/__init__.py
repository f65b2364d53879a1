"""Wire protocols, sans-I/O: bytes to commands, and back."""
