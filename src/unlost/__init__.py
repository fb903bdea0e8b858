"""Web-archive profiling, Memento aggregation, and recovery of lost websites from web archives.

This is the public Python API, documented in docs/python.md and docs/api.md. `import unlost` imports no submodule: each
name is imported on first use.
"""

TYPE_CHECKING = False  # recognized by type checkers; importing `typing` would take longer than this whole module
if TYPE_CHECKING:
    from unlost import errors, testing, uri
    from unlost._core import VERSION as __version__  # noqa: N811  conventional name
    from unlost.api.aggregator import Aggregator, AsyncAggregator, Memento, TimeMap
    from unlost.api.maps import build_map, compact_map
    from unlost.api.recovery import MissingResource, Recovery, Resource, RunResult, compare, recover, recover_async
    from unlost.errors import UnlostError
    from unlost.mementomap.map import Map
    from unlost.recovery import events
    from unlost.recovery.options import RecoverOptions
    from unlost.registry.loader import Registry, load_registry
    from unlost.registry.models import Archive

__all__ = [
    "Aggregator",
    "Archive",
    "AsyncAggregator",
    "Map",
    "Memento",
    "MissingResource",
    "RecoverOptions",
    "Recovery",
    "Registry",
    "Resource",
    "RunResult",
    "TimeMap",
    "UnlostError",
    "__version__",
    "build_map",
    "compact_map",
    "compare",
    "errors",
    "events",
    "load_registry",
    "recover",
    "recover_async",
    "testing",
    "uri",
]

# Location of each public name as `module:attribute`; a name that is itself a module has no attribute.
_LOCATIONS = {
    "Aggregator": "api.aggregator:Aggregator",
    "Archive": "registry.models:Archive",
    "AsyncAggregator": "api.aggregator:AsyncAggregator",
    "Map": "mementomap.map:Map",
    "Memento": "api.aggregator:Memento",
    "MissingResource": "api.recovery:MissingResource",
    "RecoverOptions": "recovery.options:RecoverOptions",
    "Recovery": "api.recovery:Recovery",
    "Registry": "registry.loader:Registry",
    "Resource": "api.recovery:Resource",
    "RunResult": "api.recovery:RunResult",
    "TimeMap": "api.aggregator:TimeMap",
    "UnlostError": "errors:UnlostError",
    "__version__": "_core:VERSION",
    "build_map": "api.maps:build_map",
    "compact_map": "api.maps:compact_map",
    "compare": "api.recovery:compare",
    "errors": "errors:",
    "events": "recovery.events:",
    "load_registry": "registry.loader:load_registry",
    "recover": "api.recovery:recover",
    "recover_async": "api.recovery:recover_async",
    "testing": "testing:",
    "uri": "uri:",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _LOCATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  start-up time

    module, _, attribute = _LOCATIONS[name].partition(":")
    imported = import_module(f"unlost.{module}")
    value = getattr(imported, attribute) if attribute else imported
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
