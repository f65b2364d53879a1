"""The cluster behind a lookup gateway, by the protocol it speaks."""
