"""Predicts which pages have changed since the last visit, and revisits only these.

A policy is learned from a log of earlier visits, decides by ETag, Last-Modified and other headers, and is checked by
audits. docs/refresh.md describes the log, the policy, the estimates and harvests.

Modules, in reading order:

- `visit`: one visit to a page, a line of the log.
- `page_text_digest`: comparison of the visible text of pages.
- `log_reader`, `history`: from logs and WARC files to pairs of consecutive visits.
- `decision_matrix`, `schemes`, `confidence`: counts by header behaviour, download schemes, confidence intervals.
- `policy`: learning, storing and applying a policy.
- `harvest_state`, `page_visitor`, `harvester`: revisiting pages by a policy.
- `cdxj_history`: import and export of captures as CDXJ.

The package must not import the command line or the web service.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
