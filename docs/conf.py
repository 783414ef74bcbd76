"""How the site is built (``make docs``). It carries all it needs: a reader's browser fetches nothing from elsewhere."""

import sys
from pathlib import Path

import ahop

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "ahop"
author = "the authors of ahop"
version = release = ahop.__version__
html_title = f"ahop {version}"
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "mathml",
    "names",
    "notebooks",
]
exclude_patterns = ["_extensions", "pictures"]
suppress_warnings = ["myst.header"]

myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_copyright = False
html_math_renderer = "mathml"
pygments_style = "friendly"
pygments_dark_style = "monokai"

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 110
autodoc_inherit_docstrings = False
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
napoleon_custom_sections = ["Shape"]
napoleon_use_rtype = False
add_module_names = False
toc_object_entries_show_parents = "hide"

nitpicky = True
# Other libraries' pages are not asked for while building.
nitpick_ignore_regex = [
    ("py:.*", r"(torch|numpy|np|sklearn|pandas|collections|os)\..*"),
    ("py:class", "Tensor|Axes|Figure|Observed"),
]
