"""Experiments and measurements of the papers, and the statistics reports of the command line.

Modules in reading order:

- `synth`: synthetic indexes and queries.
- `index_counts`, `index_metrics`, `index_report`: statistics of a CDX index.
- `access_stats`: statistics of access logs.
- `routing_results`, `routing_evaluation`, `growth`, `routing_report`: routing accuracy of maps, profiles and filters.
- `page_snapshot`, `overlap_state`, `overlap_survey`, `overlap_stats`, `overlap_report`: which archives
  contain the same pages.
- `regression`, `factors`: factors that correlate with the recovery of a resource.
- `simulated_web`, `refresh_simulation`: revisit schedules on a simulated web.
- `table_export`, `plots`: output.
- `spark`: counts, maps, profiles and filters on a Spark cluster.

Only the command line, benchmarks and tests import this package; it must not import `unlost.cli` or `unlost.web`.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.research.access_stats import LOG_KINDS as LOG_KINDS
    from unlost.research.access_stats import AccessStats as AccessStats
    from unlost.research.access_stats import ArchiveOutcomes as ArchiveOutcomes
    from unlost.research.access_stats import access_stats_to_json as access_stats_to_json
    from unlost.research.access_stats import access_tables as access_tables
    from unlost.research.access_stats import collect_access_stats as collect_access_stats
    from unlost.research.access_stats import detect_access_log_kind as detect_access_log_kind
    from unlost.research.access_stats import magnitude_of as magnitude_of
    from unlost.research.access_stats import open_request_counter as open_request_counter
    from unlost.research.access_stats import render_access_page as render_access_page
    from unlost.research.access_stats import tabulate_holdings as tabulate_holdings
    from unlost.research.access_stats import write_access_report as write_access_report
    from unlost.research.factors import FACTOR_COLUMNS as FACTOR_COLUMNS
    from unlost.research.factors import FACTORS as FACTORS
    from unlost.research.factors import NUMERIC_FACTORS as NUMERIC_FACTORS
    from unlost.research.factors import ExternalFactorData as ExternalFactorData
    from unlost.research.factors import analyze_factors as analyze_factors
    from unlost.research.factors import read_factor_rows as read_factor_rows
    from unlost.research.factors import render_factors_page as render_factors_page
    from unlost.research.growth import measure_growth as measure_growth
    from unlost.research.growth import r_squared as r_squared
    from unlost.research.growth import slice_index as slice_index
    from unlost.research.index_counts import DomainCounts as DomainCounts
    from unlost.research.index_counts import IndexCountOptions as IndexCountOptions
    from unlost.research.index_counts import IndexCounts as IndexCounts
    from unlost.research.index_counts import TopHost as TopHost
    from unlost.research.index_counts import TopPage as TopPage
    from unlost.research.index_counts import count_index as count_index
    from unlost.research.index_counts import estimate_index as estimate_index
    from unlost.research.index_counts import exact_counts as exact_counts
    from unlost.research.index_counts import merge_counts as merge_counts
    from unlost.research.index_metrics import IndexMetrics as IndexMetrics
    from unlost.research.index_metrics import YearMetrics as YearMetrics
    from unlost.research.index_metrics import key_reduction as key_reduction
    from unlost.research.index_metrics import reduction_curve as reduction_curve
    from unlost.research.index_report import index_metrics_to_json as index_metrics_to_json
    from unlost.research.index_report import render_index_page as render_index_page
    from unlost.research.index_report import write_index_report as write_index_report
    from unlost.research.overlap_report import overlap_to_json as overlap_to_json
    from unlost.research.overlap_state import OverlapState as OverlapState
    from unlost.research.overlap_stats import ArchiveMembership as ArchiveMembership
    from unlost.research.overlap_stats import LiveComparison as LiveComparison
    from unlost.research.overlap_stats import OverlapStats as OverlapStats
    from unlost.research.overlap_stats import best_covers as best_covers
    from unlost.research.overlap_stats import compute_overlap_stats as compute_overlap_stats
    from unlost.research.overlap_stats import minimum_covers as minimum_covers
    from unlost.research.overlap_stats import summarize_values as summarize_values
    from unlost.research.overlap_survey import LiveWebClient as LiveWebClient
    from unlost.research.overlap_survey import OverlapSurvey as OverlapSurvey
    from unlost.research.overlap_survey import PoliteLiveWebClient as PoliteLiveWebClient
    from unlost.research.page_snapshot import PageObservation as PageObservation
    from unlost.research.page_snapshot import snapshot_response as snapshot_response
    from unlost.research.page_snapshot import unpack_text as unpack_text
    from unlost.research.plots import plot_watch as plot_watch
    from unlost.research.plots import validate_plot_path as validate_plot_path
    from unlost.research.refresh_simulation import ConditionalMethod as ConditionalMethod
    from unlost.research.refresh_simulation import PolicyMethod as PolicyMethod
    from unlost.research.refresh_simulation import ScheduleScore as ScheduleScore
    from unlost.research.refresh_simulation import SchemeMethod as SchemeMethod
    from unlost.research.refresh_simulation import SimulationScore as SimulationScore
    from unlost.research.refresh_simulation import SimulationTrial as SimulationTrial
    from unlost.research.refresh_simulation import build_history as build_history
    from unlost.research.refresh_simulation import run_methods as run_methods
    from unlost.research.refresh_simulation import run_trial as run_trial
    from unlost.research.refresh_simulation import simulate_schedules as simulate_schedules
    from unlost.research.regression import MIN_DEGREES_OF_FREEDOM as MIN_DEGREES_OF_FREEDOM
    from unlost.research.regression import ColumnFile as ColumnFile
    from unlost.research.regression import RegressionModel as RegressionModel
    from unlost.research.regression import compute_moments as compute_moments
    from unlost.research.regression import fit_linear as fit_linear
    from unlost.research.regression import fit_logistic as fit_logistic
    from unlost.research.routing_evaluation import ConfigurationTrial as ConfigurationTrial
    from unlost.research.routing_evaluation import QueryDecisions as QueryDecisions
    from unlost.research.routing_evaluation import QuerySet as QuerySet
    from unlost.research.routing_evaluation import count_rows as count_rows
    from unlost.research.routing_evaluation import estimate_probabilities as estimate_probabilities
    from unlost.research.routing_evaluation import evaluate_archives as evaluate_archives
    from unlost.research.routing_evaluation import evaluate_index as evaluate_index
    from unlost.research.routing_evaluation import likelihood_band as likelihood_band
    from unlost.research.routing_evaluation import read_profile_blocks as read_profile_blocks
    from unlost.research.routing_report import draw_accuracy as draw_accuracy
    from unlost.research.routing_report import render_evaluation_page as render_evaluation_page
    from unlost.research.routing_report import write_evaluation_report as write_evaluation_report
    from unlost.research.routing_results import WEIGHT_PAIRS as WEIGHT_PAIRS
    from unlost.research.routing_results import ArchiveEvaluation as ArchiveEvaluation
    from unlost.research.routing_results import ConfigurationSize as ConfigurationSize
    from unlost.research.routing_results import RoutingConfiguration as RoutingConfiguration
    from unlost.research.routing_results import RoutingResult as RoutingResult
    from unlost.research.routing_results import list_configurations as list_configurations
    from unlost.research.routing_results import pareto_optimal_results as pareto_optimal_results
    from unlost.research.routing_results import upstream_loads as upstream_loads
    from unlost.research.simulated_web import MIXTURES as MIXTURES
    from unlost.research.simulated_web import TRAITS as TRAITS
    from unlost.research.simulated_web import ServerMixture as ServerMixture
    from unlost.research.simulated_web import SimulatedVisit as SimulatedVisit
    from unlost.research.simulated_web import get_mixture as get_mixture
    from unlost.research.simulated_web import simulate_visits as simulate_visits
    from unlost.research.synth import SynthIndexOptions as SynthIndexOptions
    from unlost.research.synth import SynthQueryCounts as SynthQueryCounts
    from unlost.research.synth import SynthQueryOptions as SynthQueryOptions
    from unlost.research.synth import write_synthetic_index as write_synthetic_index
    from unlost.research.synth import write_synthetic_index_to as write_synthetic_index_to
    from unlost.research.synth import write_synthetic_queries as write_synthetic_queries
    from unlost.research.table_export import table_to_csv as table_to_csv
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "access_stats": (
                "AccessStats ArchiveOutcomes LOG_KINDS access_stats_to_json access_tables collect_access_stats "
                "detect_access_log_kind magnitude_of open_request_counter render_access_page tabulate_holdings "
                "write_access_report"
            ),
            "factors": (
                "ExternalFactorData FACTORS FACTOR_COLUMNS NUMERIC_FACTORS analyze_factors read_factor_rows "
                "render_factors_page"
            ),
            "growth": "measure_growth r_squared slice_index",
            "index_counts": (
                "DomainCounts IndexCountOptions IndexCounts TopHost TopPage count_index estimate_index "
                "exact_counts merge_counts"
            ),
            "index_metrics": "IndexMetrics YearMetrics key_reduction reduction_curve",
            "index_report": "index_metrics_to_json render_index_page write_index_report",
            "overlap_report": "overlap_to_json",
            "overlap_state": "OverlapState",
            "overlap_stats": (
                "ArchiveMembership LiveComparison OverlapStats best_covers compute_overlap_stats minimum_covers "
                "summarize_values"
            ),
            "overlap_survey": "LiveWebClient OverlapSurvey PoliteLiveWebClient",
            "page_snapshot": "PageObservation unpack_text snapshot_response",
            "plots": "plot_watch validate_plot_path",
            "refresh_simulation": (
                "ConditionalMethod PolicyMethod ScheduleScore SchemeMethod SimulationScore SimulationTrial "
                "build_history run_methods run_trial simulate_schedules"
            ),
            "regression": "ColumnFile MIN_DEGREES_OF_FREEDOM RegressionModel compute_moments fit_linear fit_logistic",
            "routing_evaluation": (
                "ConfigurationTrial QueryDecisions QuerySet count_rows estimate_probabilities evaluate_archives "
                "evaluate_index likelihood_band read_profile_blocks"
            ),
            "routing_report": "draw_accuracy render_evaluation_page write_evaluation_report",
            "routing_results": (
                "ArchiveEvaluation ConfigurationSize RoutingConfiguration RoutingResult WEIGHT_PAIRS "
                "list_configurations pareto_optimal_results upstream_loads"
            ),
            "simulated_web": "MIXTURES ServerMixture SimulatedVisit TRAITS get_mixture simulate_visits",
            "synth": (
                "SynthIndexOptions SynthQueryCounts SynthQueryOptions write_synthetic_index "
                "write_synthetic_index_to write_synthetic_queries"
            ),
            "table_export": "table_to_csv",
        },
    )
