"""An open generation: verified, mapped, looked up."""
