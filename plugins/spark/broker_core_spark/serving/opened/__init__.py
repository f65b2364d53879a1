"""A generation that is open: verified, mapped, and looked up."""
