"""The Memento protocol (RFC 7089): TimeMaps in link-format, and compact lists of mementos.

`timemap` is its only module. It imports the top level and the Rust core, and must not import `archives` or `aggregate`.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.memento.timemap import TIMEMAP_PROBLEM_KINDS as TIMEMAP_PROBLEM_KINDS
    from unlost.memento.timemap import ArchiveTimeMap as ArchiveTimeMap
    from unlost.memento.timemap import LinkFormatTimeMap as LinkFormatTimeMap
    from unlost.memento.timemap import MementoDedup as MementoDedup
    from unlost.memento.timemap import Mementos as Mementos
    from unlost.memento.timemap import MementoTuple as MementoTuple
    from unlost.memento.timemap import TimeMapEntry as TimeMapEntry
    from unlost.memento.timemap import TimeMapLink as TimeMapLink
    from unlost.memento.timemap import format_timemap as format_timemap
    from unlost.memento.timemap import read_archive_timemap as read_archive_timemap
    from unlost.memento.timemap import read_timemap as read_timemap
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "timemap": (
                "ArchiveTimeMap LinkFormatTimeMap MementoTuple Mementos MementoDedup TIMEMAP_PROBLEM_KINDS "
                "TimeMapEntry TimeMapLink format_timemap read_archive_timemap read_timemap"
            ),
        },
    )
