"""The cluster behind a gateway, by the protocol it speaks."""
