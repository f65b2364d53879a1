"""Programs that run with the package of a tree under measurement; they import nothing but ``broker_core``."""
