"""A request on its way: its call, the row of its API, its job, and its pages."""
