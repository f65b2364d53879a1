"""A request on its way: its state, its permits, the options of the operator, the rules of the steps."""
