"""The format of a generation's files: bytes alone, no store. The reference specifies it."""
