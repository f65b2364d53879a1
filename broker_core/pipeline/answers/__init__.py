"""The answers of the pipeline and the text of their questions."""
