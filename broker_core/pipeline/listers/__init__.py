"""Asking listers in their order: accepting their answers, their details, former answers, the rest of the chain."""
