"""Pages of a selection: their bounds, their order and the walk through them."""
