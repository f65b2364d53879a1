"""The testing kit for authors of plugins."""
