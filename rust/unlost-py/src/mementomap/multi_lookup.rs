//! Maps and filters of several archives, queried together for one page.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::filter::FilterFile;
use super::lookup::MapRows;
use crate::texts::text;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CoreMultiLookup>()
}

/// The status of a page, as explained in `unlost.mementomap.lookup`.
mod status {
    pub const UNCOVERED: u8 = 0;
    pub const EXCLUDED: u8 = 1;
    pub const NOT_IN_FILTERS: u8 = 2;
    pub const IN_FILTERS: u8 = 3;
    pub const LISTED: u8 = 4;
    pub const WILDCARD: u8 = 5;
    pub const IN_BOTH: u8 = 6;
    pub const LISTED_ONLY: u8 = 7;
    pub const WILDCARD_ONLY: u8 = 8;
    pub const DAMAGED: u8 = 9;
}

/// The indexes of an archive: its map, if it has one, and its filters.
struct ArchiveIndexes {
    map: Option<Py<MapRows>>,
    filters: Vec<Py<FilterFile>>,
}

type PyArchiveIndexes = (Option<Py<MapRows>>, Vec<Py<FilterFile>>);

/// The maps and filters of several archives.
#[pyclass(frozen, module = "unlost._core")]
struct CoreMultiLookup(Vec<ArchiveIndexes>);

#[pymethods]
impl CoreMultiLookup {
    #[new]
    fn new(archives: Vec<PyArchiveIndexes>) -> Self {
        let archives = archives.into_iter();
        Self(
            archives
                .map(|(map, filters)| ArchiveIndexes { map, filters })
                .collect(),
        )
    }

    /// One byte per archive. Does not release the GIL, which would take longer than the look-up.
    fn lookup_key<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let query = text(key)?;
        let statuses: Vec<u8> = self
            .0
            .iter()
            .map(|archive| archive.status(&query))
            .collect();
        Ok(PyBytes::new(key.py(), &statuses))
    }
}

impl ArchiveIndexes {
    fn status(&self, key: &[u8]) -> u8 {
        self.find(key).unwrap_or(status::DAMAGED)
    }

    /// The status; `None` if something is damaged.
    fn find(&self, key: &[u8]) -> Option<u8> {
        let Some(map) = &self.map else {
            return Some(if self.filters_contain(key)? {
                status::IN_FILTERS
            } else {
                status::NOT_IN_FILTERS
            });
        };
        let Some((is_held, is_wildcard)) = map.get().find(key)? else {
            return Some(status::UNCOVERED);
        };
        if !is_held {
            return Some(status::EXCLUDED);
        }
        let by = |listed, wildcard| if is_wildcard { wildcard } else { listed };
        Some(if self.filters.is_empty() {
            by(status::LISTED, status::WILDCARD)
        } else if self.filters_contain(key)? {
            status::IN_BOTH
        } else {
            by(status::LISTED_ONLY, status::WILDCARD_ONLY)
        })
    }

    /// Whether any filter contains a key; `None` if a queried one is damaged.
    fn filters_contain(&self, key: &[u8]) -> Option<bool> {
        for filter in &self.filters {
            if filter.get().has(key)? {
                return Some(true);
            }
        }
        Some(false)
    }
}
