"""Execution of work: threads in fair turns, shared runs of equal questions, the time budget."""
