"""`unlost report --factors`: correlates factors with recovery, over several recoveries."""

from collections.abc import Sequence
from json import dumps
from pathlib import Path

from unlost.atomic import atomic_file
from unlost.cli.output import check_output_file, format_tables, write_lines
from unlost.cli.problems import EXIT_SKIPPED_INPUT, say_problems
from unlost.comparison.site_readers import open_site
from unlost.problems import Problems
from unlost.report.format import escape_unprintable
from unlost.research.factors import (
    ExternalFactorData,
    analyze_factors,
    factor_tables,
    factors_headline,
    factors_remarks,
    factors_to_json,
    read_host_numbers,
    recovered_hosts,
    render_factors_page,
)
from unlost.research.plots import plot_factors, validate_plot_path


def run_factors(
    recoveries: Sequence[Path],
    ranks: Path | None,
    backlinks: Path | None,
    originals: Sequence[Path],
    html: Path | None,
    plot: Path | None,
    *,
    json: bool,
) -> int:
    """Print how the factors correlate with recovery; return the exit code. Raises UsageError, InputError, OSError."""
    validate_plot_path(plot)
    for each in (html, plot):
        if each is not None:
            check_output_file(each)
    problems = Problems()
    hosts = recovered_hosts(recoveries) if ranks or backlinks else set()
    sizes = {}
    for original in originals:
        sizes.update({name: each.size for name, each in open_site(original).resources.items()})
    known = ExternalFactorData(
        read_host_numbers(ranks, hosts, problems) if ranks else {},
        read_host_numbers(backlinks, hosts, problems) if backlinks else {},
        sizes,
    )
    found = analyze_factors(recoveries, known)
    if html is not None:
        with atomic_file(html) as file:
            file.write(render_factors_page(found).encode("utf-8", "backslashreplace"))
    if plot is not None:
        plot_factors(found, plot)
    if json:
        write_lines([dumps(factors_to_json(found)) + "\n"])
    else:
        lines = [
            factors_headline(found),
            *map(escape_unprintable, factors_remarks(found)),
            *format_tables(factor_tables(found)),
        ]
        write_lines([line + "\n" for line in lines])
    say_problems(problems)
    return EXIT_SKIPPED_INPUT if problems.total else 0
