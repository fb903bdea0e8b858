r"""MementoMaps, filters and URI-Key profiles: what an archive holds, built from its index, and look-ups in them.

Modules in reading order:

- `readers`: Detection and counting of inputs; options and reports common to all builders.
- `map_file`: The MementoMap file format.
- `builder`, `compact`, `budget`, `merge`, `exclude`, `check`: Create, compact, merge, extend and validate maps.
- `map`: Look-ups in a map.
- `filter`, `filter_builder`: Static approximate membership filters.
- `lookup`: Combined look-ups in the map and the filters of one or more archives.
- `profile`, `profile_builder`: URI-Key profiles.
- `query_logs`: Logs of requested pages, for `budget` and `exclude`.

It must not import `archives`, `aggregate`, `recover` or anything else that sends requests.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from unlost.mementomap import Map
>>> with TemporaryDirectory() as folder:
...     file = Path(folder, "a.ukvs")
...     _ = file.write_text("com,* 10000+\norg,arxiv)/* 2500~/900\norg,arxiv)/pdf/* 0\n")
...     Map.open(file).lookup("https://arxiv.org/pdf/1234")
LookupResult(key='org,arxiv)/pdf/1234', held=False, matched='org,arxiv)/pdf/*', frequency='0')
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.mementomap.budget import BudgetOptions as BudgetOptions
    from unlost.mementomap.budget import MapBudget as MapBudget
    from unlost.mementomap.budget import MissPrior as MissPrior
    from unlost.mementomap.budget import choose_filter_bits as choose_filter_bits
    from unlost.mementomap.budget import compact_to_budget as compact_to_budget
    from unlost.mementomap.budget import compressed_size as compressed_size
    from unlost.mementomap.budget import estimate_filter_bytes as estimate_filter_bytes
    from unlost.mementomap.budget import lookup_keys_in_filter as lookup_keys_in_filter
    from unlost.mementomap.budget import write_page_filter as write_page_filter
    from unlost.mementomap.builder import MapOptions as MapOptions
    from unlost.mementomap.builder import build_map as build_map
    from unlost.mementomap.builder import fit_compaction as fit_compaction
    from unlost.mementomap.builder import fit_decay_curve as fit_decay_curve
    from unlost.mementomap.check import MapCheckResult as MapCheckResult
    from unlost.mementomap.check import check_map as check_map
    from unlost.mementomap.compact import NO_LIMIT as NO_LIMIT
    from unlost.mementomap.compact import Compaction as Compaction
    from unlost.mementomap.compact import compact_map as compact_map
    from unlost.mementomap.exclude import ExclusionOptions as ExclusionOptions
    from unlost.mementomap.exclude import ExclusionReport as ExclusionReport
    from unlost.mementomap.exclude import exclude_map as exclude_map
    from unlost.mementomap.filter import Filter as Filter
    from unlost.mementomap.filter import FilterKeyKind as FilterKeyKind
    from unlost.mementomap.filter import FilterLayer as FilterLayer
    from unlost.mementomap.filter_builder import FilterOptions as FilterOptions
    from unlost.mementomap.filter_builder import FilterReport as FilterReport
    from unlost.mementomap.filter_builder import add_to_filter as add_to_filter
    from unlost.mementomap.filter_builder import build_filter as build_filter
    from unlost.mementomap.filter_builder import compact_filter as compact_filter
    from unlost.mementomap.lookup import REBUILD_AFTER_DAYS as REBUILD_AFTER_DAYS
    from unlost.mementomap.lookup import ArchiveHoldings as ArchiveHoldings
    from unlost.mementomap.lookup import HoldingsMatch as HoldingsMatch
    from unlost.mementomap.lookup import HoldingsResult as HoldingsResult
    from unlost.mementomap.lookup import MultiLookup as MultiLookup
    from unlost.mementomap.lookup import RoutingDecision as RoutingDecision
    from unlost.mementomap.lookup import RoutingReason as RoutingReason
    from unlost.mementomap.map import LookupResult as LookupResult
    from unlost.mementomap.map import LookupResults as LookupResults
    from unlost.mementomap.map import Map as Map
    from unlost.mementomap.merge import MapDifference as MapDifference
    from unlost.mementomap.merge import MapMergeReport as MapMergeReport
    from unlost.mementomap.merge import diff_maps as diff_maps
    from unlost.mementomap.merge import merge_maps as merge_maps
    from unlost.mementomap.profile import ProfileHeader as ProfileHeader
    from unlost.mementomap.profile import ProfileLookupResult as ProfileLookupResult
    from unlost.mementomap.profile import UriKeyProfile as UriKeyProfile
    from unlost.mementomap.profile_builder import PartField as PartField
    from unlost.mementomap.profile_builder import build_profiles as build_profiles
    from unlost.mementomap.profile_builder import build_profiles_by_part as build_profiles_by_part
    from unlost.mementomap.profile_builder import check_profile as check_profile
    from unlost.mementomap.profile_builder import create_profile_counter as create_profile_counter
    from unlost.mementomap.profile_builder import merge_profiles as merge_profiles
    from unlost.mementomap.profile_builder import profiles_to_map as profiles_to_map
    from unlost.mementomap.profile_builder import write_profiles as write_profiles
    from unlost.mementomap.readers import InputReport as InputReport
    from unlost.mementomap.readers import detect_input_kind as detect_input_kind
    from unlost.mementomap.readers import refuse_mixed_kinds as refuse_mixed_kinds
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "budget": (
                "BudgetOptions MapBudget MissPrior choose_filter_bits compact_to_budget compressed_size "
                "estimate_filter_bytes lookup_keys_in_filter write_page_filter"
            ),
            "builder": "MapOptions build_map fit_compaction fit_decay_curve",
            "check": "MapCheckResult check_map",
            "compact": "Compaction NO_LIMIT compact_map",
            "exclude": "ExclusionOptions ExclusionReport exclude_map",
            "filter": "Filter FilterKeyKind FilterLayer",
            "filter_builder": "FilterOptions FilterReport add_to_filter build_filter compact_filter",
            "lookup": (
                "ArchiveHoldings HoldingsMatch HoldingsResult MultiLookup REBUILD_AFTER_DAYS RoutingDecision "
                "RoutingReason"
            ),
            "map": "LookupResult LookupResults Map",
            "merge": "MapDifference MapMergeReport diff_maps merge_maps",
            "profile": "ProfileHeader ProfileLookupResult UriKeyProfile",
            "profile_builder": (
                "PartField build_profiles build_profiles_by_part check_profile create_profile_counter "
                "merge_profiles profiles_to_map write_profiles"
            ),
            "readers": "InputReport detect_input_kind refuse_mixed_kinds",
        },
    )
