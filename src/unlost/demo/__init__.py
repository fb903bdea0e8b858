"""The demonstration: a fictional lost site is recovered from three archives, compared with the original and exported.

Modules in reading order:

- `site`: the site, and its WARCs and indexes
- `archives`: serves them with fake archives, or with pywb, which is not a dependency
- `story`: runs the steps, by calling what `import unlost` offers to all programs
- `page`: renders the result as HTML and JSON
- `server`: serves the pages

The original that is shown is recovered from its own WARC and exported, so both sites differ in content only. Pages show
them in nested frames, so that a link changes both at once without a script. Only the command line and scripts import
this package.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
