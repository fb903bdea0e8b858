"""The registry of web archives: what is known about each archive before it is queried.

models: `Archive` and its parts. loader: the shipped archives.toml, a user's own file that replaces or extends it, or
MemGator's archives.json; validation of values in hand-written files.

Imports only errors and problems (error messages); http and archives build on it.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.registry.loader import LOCAL_KINDS as LOCAL_KINDS
    from unlost.registry.loader import Registry as Registry
    from unlost.registry.loader import load_registry as load_registry
    from unlost.registry.loader import without_default_limits as without_default_limits
    from unlost.registry.models import Archive as Archive
    from unlost.registry.models import ArchiveKind as ArchiveKind
    from unlost.registry.models import PrefixListing as PrefixListing
    from unlost.registry.models import RateLimit as RateLimit
    from unlost.registry.models import RequestKind as RequestKind
    from unlost.registry.models import SourcedNumber as SourcedNumber
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "loader": "LOCAL_KINDS Registry load_registry without_default_limits",
            "models": "Archive ArchiveKind PrefixListing RateLimit RequestKind SourcedNumber",
        },
    )
