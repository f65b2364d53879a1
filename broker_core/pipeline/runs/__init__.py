"""How work runs: threads in fair turns, one run for equal questions, the time budget."""
