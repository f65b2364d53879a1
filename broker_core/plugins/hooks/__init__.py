"""The hooks that a running broker asks: one module for each of them, with what an answer may be."""
