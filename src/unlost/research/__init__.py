"""Experiments and measurements of the papers.

synth: synthetic indexes and queries
index_counts, index_metrics, index_report: statistics of an index
access_stats: statistics of access logs
routing_results, routing_evaluation, growth, routing_report: how well maps, profiles and filters route
set_cover, page_snapshot, overlap_state, overlap_survey, overlap_stats, overlap_report: which archives hold the same
pages
regression, factors: which factors go with the recovery of a resource
table_export, plots: output
spark: the same counts and maps on a Spark cluster

Only the command line and benchmarks import this package.
"""
