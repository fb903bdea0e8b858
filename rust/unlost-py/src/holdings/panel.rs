//! Maps and filters of several archives, asked together about one page.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::filter::FilterFile;
use super::lookup::MapRows;
use crate::texts::text;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Panel>()
}

/// What is found about a page, as `unlost.mementomap.lookup` explains it.
mod found {
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

/// An archive's map, if it has one, and its filters.
struct Seat {
    map: Option<Py<MapRows>>,
    filters: Vec<Py<FilterFile>>,
}

type PySeat = (Option<Py<MapRows>>, Vec<Py<FilterFile>>);

/// What is known of several archives.
#[pyclass(frozen, module = "unlost._core")]
struct Panel(Vec<Seat>);

#[pymethods]
impl Panel {
    #[new]
    fn new(seats: Vec<PySeat>) -> Self {
        let seats = seats.into_iter();
        Self(seats.map(|(map, filters)| Seat { map, filters }).collect())
    }

    /// A byte for each archive. Nobody else runs meanwhile: that would take longer than all of it.
    fn lookup_key<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let question = text(key)?;
        let found: Vec<u8> = self.0.iter().map(|seat| seat.ask(&question)).collect();
        Ok(PyBytes::new(key.py(), &found))
    }
}

impl Seat {
    fn ask(&self, key: &[u8]) -> u8 {
        self.look(key).unwrap_or(found::DAMAGED)
    }

    /// What is found; nothing if something is damaged.
    fn look(&self, key: &[u8]) -> Option<u8> {
        let Some(map) = &self.map else {
            return Some(if self.is_had(key)? {
                found::IN_FILTERS
            } else {
                found::NOT_IN_FILTERS
            });
        };
        let Some((is_held, is_wildcard)) = map.get().find(key)? else {
            return Some(found::UNCOVERED);
        };
        if !is_held {
            return Some(found::EXCLUDED);
        }
        let by = |listed, wildcard| if is_wildcard { wildcard } else { listed };
        Some(if self.filters.is_empty() {
            by(found::LISTED, found::WILDCARD)
        } else if self.is_had(key)? {
            found::IN_BOTH
        } else {
            by(found::LISTED_ONLY, found::WILDCARD_ONLY)
        })
    }

    /// Whether any filter has a key; nothing if one is damaged that was asked.
    fn is_had(&self, key: &[u8]) -> Option<bool> {
        for filter in &self.filters {
            if filter.get().has(key)? {
                return Some(true);
            }
        }
        Some(false)
    }
}
