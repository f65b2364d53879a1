"""The hooks that a running broker calls: a module for each, with the checks of its answers."""
