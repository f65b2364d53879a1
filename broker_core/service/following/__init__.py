"""Questions that are followed: asked once for all that follow them, and again where their answer may be another one."""
