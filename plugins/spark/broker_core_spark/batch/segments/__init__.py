"""Making segments: assigning them to tasks, matching, writing, adding up totals."""
