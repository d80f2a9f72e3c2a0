"""Sphinx configuration. Nothing is fetched: the docs build without a network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "idrl"
author = "the idrl developers"
copyright = "the idrl developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "idrl"
html_static_path = ["_static"]
html_css_files = ["idrl.css"]
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
default_role = "literal"  # single backticks in docstrings
napoleon_use_ivar = True
highlight_language = "none"  # a block without a language is a command
