"""Access: what a gate is asked before a request is served."""
