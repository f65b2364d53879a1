"""The cluster that clients of a gateway see: its nodes at ports of the gateway."""
