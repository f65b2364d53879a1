"""Asking listers in their order: accepting their answers, their details, the rest of the chain (``request.rest()``)."""
