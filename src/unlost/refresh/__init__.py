"""Predicting which pages changed since the last visit, and revisiting only these.

A policy is learned from a log of earlier visits, decides by ETag, Last-Modified and other headers, and is checked by
audits. docs/refresh.md describes the log, the policy and the estimates; docs/harvest.md describes harvests.

Modules, in reading order:

- `visit`: one visit to a page, a line of the log.
- `page_text_digest`: comparison of the visible text of pages.
- `log_reader`, `history`: from logs and WARC files to pairs of consecutive visits.
- `decision_matrix`, `schemes`, `confidence`: counts by header behaviour, download schemes, confidence intervals.
- `policy`: learning, storing and applying a policy.
- `harvest_state`, `page_visitor`, `harvester`: revisiting pages by a policy.
- `cdxj_history`: import and export of captures as CDXJ.

Must not import the command line or the web service.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.refresh.cdxj_history import export_cdxj as export_cdxj
    from unlost.refresh.cdxj_history import import_cdxj as import_cdxj
    from unlost.refresh.confidence import ChangeRate as ChangeRate
    from unlost.refresh.confidence import ClusteredShare as ClusteredShare
    from unlost.refresh.confidence import estimate_change_rate as estimate_change_rate
    from unlost.refresh.confidence import wilson_confidence as wilson_confidence
    from unlost.refresh.decision_matrix import ALL_INDICATORS as ALL_INDICATORS
    from unlost.refresh.decision_matrix import CELL_COUNT as CELL_COUNT
    from unlost.refresh.decision_matrix import INDICATORS as INDICATORS
    from unlost.refresh.decision_matrix import DecisionMatrix as DecisionMatrix
    from unlost.refresh.decision_matrix import compute_cell as compute_cell
    from unlost.refresh.decision_matrix import format_cell as format_cell
    from unlost.refresh.decision_matrix import indicator_bits as indicator_bits
    from unlost.refresh.decision_matrix import measure_indicator as measure_indicator
    from unlost.refresh.decision_matrix import parse_cell as parse_cell
    from unlost.refresh.decision_matrix import project_to_indicators as project_to_indicators
    from unlost.refresh.decision_matrix import restrict_to_both_present as restrict_to_both_present
    from unlost.refresh.harvest_state import HarvestPage as HarvestPage
    from unlost.refresh.harvest_state import HarvestState as HarvestState
    from unlost.refresh.harvest_state import HostBehaviour as HostBehaviour
    from unlost.refresh.harvest_state import PageSnapshot as PageSnapshot
    from unlost.refresh.harvester import HarvestOptions as HarvestOptions
    from unlost.refresh.harvester import HarvestResult as HarvestResult
    from unlost.refresh.harvester import add_pages as add_pages
    from unlost.refresh.harvester import begin_round as begin_round
    from unlost.refresh.harvester import harvest as harvest
    from unlost.refresh.harvester import normalize_visit_url as normalize_visit_url
    from unlost.refresh.history import ChangeHistory as ChangeHistory
    from unlost.refresh.history import find_unreliable_hosts as find_unreliable_hosts
    from unlost.refresh.log_reader import VisitLogReader as VisitLogReader
    from unlost.refresh.log_reader import add_parquet_log as add_parquet_log
    from unlost.refresh.page_text_digest import PageTextSketch as PageTextSketch
    from unlost.refresh.page_text_digest import TextDigestCache as TextDigestCache
    from unlost.refresh.page_text_digest import sketch_page_text as sketch_page_text
    from unlost.refresh.page_visitor import FetchMethod as FetchMethod
    from unlost.refresh.page_visitor import choose_fetch_method as choose_fetch_method
    from unlost.refresh.policy import LearningOptions as LearningOptions
    from unlost.refresh.policy import Policy as Policy
    from unlost.refresh.policy import history_host as history_host
    from unlost.refresh.policy import learn_policy as learn_policy
    from unlost.refresh.policy import read_policy as read_policy
    from unlost.refresh.policy import serialize_policy as serialize_policy
    from unlost.refresh.policy import write_policy as write_policy
    from unlost.refresh.schemes import NAMED_SCHEMES as NAMED_SCHEMES
    from unlost.refresh.schemes import OBVIOUS_SCHEMES as OBVIOUS_SCHEMES
    from unlost.refresh.schemes import choose_scheme as choose_scheme
    from unlost.refresh.schemes import distinct_scores as distinct_scores
    from unlost.refresh.schemes import filter_scores as filter_scores
    from unlost.refresh.schemes import find_dominators as find_dominators
    from unlost.refresh.schemes import scheme_name as scheme_name
    from unlost.refresh.schemes import score_all_schemes as score_all_schemes
    from unlost.refresh.schemes import score_scheme as score_scheme
    from unlost.refresh.schemes import undominated_schemes as undominated_schemes
    from unlost.refresh.visit import FIELDS as FIELDS
    from unlost.refresh.visit import Visit as Visit
    from unlost.refresh.visit import serialize_visit as serialize_visit
    from unlost.refresh.visit import visit_from_headers as visit_from_headers
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "cdxj_history": "export_cdxj import_cdxj",
            "confidence": "ChangeRate ClusteredShare estimate_change_rate wilson_confidence",
            "decision_matrix": (
                "ALL_INDICATORS CELL_COUNT DecisionMatrix INDICATORS compute_cell format_cell indicator_bits "
                "measure_indicator parse_cell project_to_indicators restrict_to_both_present"
            ),
            "harvest_state": "HarvestPage HarvestState HostBehaviour PageSnapshot",
            "harvester": "HarvestOptions HarvestResult add_pages begin_round harvest normalize_visit_url",
            "history": "ChangeHistory find_unreliable_hosts",
            "log_reader": "VisitLogReader add_parquet_log",
            "page_text_digest": "PageTextSketch TextDigestCache sketch_page_text",
            "page_visitor": "FetchMethod choose_fetch_method",
            "policy": "LearningOptions Policy learn_policy read_policy serialize_policy history_host write_policy",
            "schemes": (
                "NAMED_SCHEMES OBVIOUS_SCHEMES choose_scheme distinct_scores filter_scores find_dominators "
                "undominated_schemes scheme_name score_all_schemes score_scheme"
            ),
            "visit": "FIELDS Visit serialize_visit visit_from_headers",
        },
    )
