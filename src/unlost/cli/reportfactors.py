"""`unlost report --factors`: what has to do with coming back, over several recoveries."""

from collections.abc import Sequence
from json import dumps
from pathlib import Path

from unlost.cli.addresses import write
from unlost.cli.problems import SKIPPED_INPUT, say_problems
from unlost.cli.table import table_lines
from unlost.cli.target import check_new_file
from unlost.formats.output import whole_file
from unlost.formats.problems import Problems
from unlost.measure.factors.findings import findings_of
from unlost.measure.factors.host_numbers import read_numbers
from unlost.measure.factors.objects import factors_object
from unlost.measure.factors.page import factors_page
from unlost.measure.factors.reading import Known, hosts_of
from unlost.measure.factors.tables import factor_tables, headline, remarks
from unlost.measure.plots import check_plot, plot_factors
from unlost.measure.sites.opening import open_site
from unlost.shown.words import printable


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
    """Print what recoveries tell about the factors; return the exit code. Raises UsageError, InputError, OSError."""
    check_plot(plot)
    for each in (html, plot):
        if each is not None:
            check_new_file(each)
    problems = Problems()
    hosts = hosts_of(recoveries) if ranks or backlinks else set()
    sizes = {}
    for original in originals:
        sizes.update({name: each.size for name, each in open_site(original).resources.items()})
    known = Known(
        read_numbers(ranks, hosts, problems) if ranks else {},
        read_numbers(backlinks, hosts, problems) if backlinks else {},
        sizes,
    )
    found = findings_of(recoveries, known)
    if html is not None:
        with whole_file(html) as file:
            file.write(factors_page(found).encode("utf-8", "backslashreplace"))
    if plot is not None:
        plot_factors(found, plot)
    if json:
        write([dumps(factors_object(found)) + "\n"])
    else:
        lines = [headline(found), *map(printable, remarks(found)), *table_lines(factor_tables(found))]
        write([line + "\n" for line in lines])
    say_problems(problems)
    return SKIPPED_INPUT if problems.total else 0
