//! Binding of merging maps.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use pyo3::prelude::*;
use unlost_core::input::Lines;
use unlost_core::input::Source as Text;
use unlost_core::input::is_compressed;
use unlost_core::mapping::Mapping;
use unlost_core::mementomap::lookup::{Layout, MemoryMap, MemoryMapBuilder, NotSorted, TextMap};
use unlost_core::mementomap::{
    self, BuildOptions, Frequency, HoldingsError, KeyLookup, MapReader, Source,
};

use super::build::{Progress, open};
use super::convert::{self, PyLineStats, raise};

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(merge_maps, module)?)
}

/// A map that is queried in its file.
struct InFile(TextMap<Mapping>);

impl KeyLookup for InFile {
    fn look_up(&mut self, key: &[u8]) -> Result<Option<Frequency>, NotSorted> {
        self.0.seeker(1)?.seek(key, &mut Vec::new())
    }
}

/// A compressed map, which has to be loaded first.
struct InMemory(MemoryMap);

impl KeyLookup for InMemory {
    fn look_up(&mut self, key: &[u8]) -> Result<Option<Frequency>, NotSorted> {
        Ok(self.0.seek(key, &mut Vec::new()))
    }
}

fn lookup(
    path: &PathBuf,
    layout: Layout,
    line_limit: usize,
) -> Result<Box<dyn KeyLookup>, HoldingsError> {
    let text = Mapping::of(&File::open(path)?)?;
    if !is_compressed(text.as_ref()) {
        return Ok(Box::new(InFile(TextMap::new(text, layout))));
    }
    let mut lines = Lines::new(Text::new(File::open(path)?)?, line_limit);
    let mut builder = MemoryMapBuilder::new(layout);
    while let Some(line) = lines.next_line()? {
        builder
            .push(line.text, line.offset)
            .map_err(|_| HoldingsError::Unsorted { line: line.number })?;
    }
    Ok(Box::new(InMemory(builder.finish())))
}

/// Merges maps, given by path and whether everything was rolled up. All have the same number of key fields.
#[pyfunction]
fn merge_maps(
    py: Python<'_>,
    sources: Vec<(PathBuf, bool)>,
    fields: usize,
    line_limit: usize,
    target: PathBuf,
    headers: Vec<u8>,
    progress: &Progress,
) -> PyResult<(u64, u64, Vec<PyLineStats>)> {
    let result = py.detach(|| {
        let mut opened = Vec::with_capacity(sources.len());
        for (path, is_rolled_up) in &sources {
            let layout = Layout {
                frequency: Some(fields),
                is_rolled_up: *is_rolled_up,
            };
            opened.push(Source {
                name: path.to_string_lossy().into_owned(),
                reader: MapReader::with_progress(
                    File::open(path)?,
                    fields,
                    line_limit,
                    &progress.0,
                )?,
                lookup: lookup(path, layout, line_limit)?,
            });
        }
        let mut out = open(&target)?;
        out.write_all(&headers)?;
        let merged = mementomap::merge_maps(
            opened,
            BuildOptions::default().memory,
            &mut out,
            &progress.0,
        )?;
        out.flush()?;
        Ok(merged)
    });
    let merged: mementomap::Merged = result.map_err(|error| raise(py, error))?;
    let tallies = merged
        .tallies
        .into_iter()
        .map(convert::line_stats)
        .collect();
    Ok((merged.lines, merged.dropped, tallies))
}
