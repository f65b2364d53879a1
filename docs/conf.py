"""Sphinx's settings of these pages (`make docs`): MyST's Markdown, furo's theme, nothing that needs the network."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "broker-core"
author = "the broker-core authors"
copyright = "the broker-core authors, Apache-2.0"
release = version = installed_version("broker-core")

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build"]
nitpicky = True

# Links to headings of other pages, as `settings.md#limits`.
myst_heading_anchors = 4

# The button copies what is typed, without the prompt and without what it prints.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"

html_theme = "furo"
html_title = f"broker-core {release}"
html_show_sphinx = False
html_copy_source = False
