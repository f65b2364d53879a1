"""Followed questions: asked once for all followers, and again when their answer may have changed."""
