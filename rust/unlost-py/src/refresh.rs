//! Visits and their history, as `unlost.refresh.history` explains them.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use unlost_core::refresh::{
    CELLS, CellCount, Fields, GROUPS, History, Learned, Pairing, Presence, Span, Visit, base_cell,
    cell_of_visits, group_of,
};

use crate::texts::text;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<VisitPairing>()?;
    module.add_class::<VisitHistory>()?;
    module.add_function(wrap_pyfunction!(project_cell, module)?)?;
    module.add_function(wrap_pyfunction!(visit_cell, module)?)
}

/// Texts of a column: which are there, where each ends, all of them behind each other.
type TextColumn<'py> = (
    Option<Bound<'py, PyBytes>>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);
/// Whole numbers of 64 bits of a column: which are there, and all of them.
type NumberColumn<'py> = (Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>);

/// Takes visits; `finish` gives their history.
#[pyclass(module = "unlost._core")]
struct VisitPairing(Option<Pairing>);

#[pymethods]
impl VisitPairing {
    #[new]
    #[pyo3(signature = (heap_bytes = None))]
    fn new(heap_bytes: Option<usize>) -> Self {
        Self(Some(heap_bytes.map_or_else(Pairing::default, Pairing::new)))
    }

    /// Takes tuples, each with the fields of `unlost.refresh.visit.FIELDS` in their order.
    fn add_rows(&mut self, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let pairing = self.open()?;
        for row in rows.try_iter()? {
            let row = row?.cast_into::<PyTuple>()?;
            pairing.add(&Taken::of(&row)?.visit())?;
        }
        Ok(())
    }

    /// Takes columns as Arrow lays them out: those of texts and those of numbers, in the order of the fields.
    fn add_columns(
        &mut self,
        py: Python<'_>,
        rows: usize,
        first: usize,
        texts: Vec<Option<TextColumn<'_>>>,
        numbers: Vec<Option<NumberColumn<'_>>>,
    ) -> PyResult<()> {
        let pairing = self.open()?;
        if texts.len() != TEXTS || numbers.len() != NUMBERS {
            return Err(PyValueError::new_err(
                "expected as many columns as there are fields",
            ));
        }
        let texts: Vec<Option<Texts<'_>>> = texts
            .iter()
            .map(|column| column.as_ref().map(Texts::of))
            .collect();
        let numbers: Vec<Option<Numbers<'_>>> = numbers
            .iter()
            .map(|column| column.as_ref().map(Numbers::of))
            .collect();
        py.detach(|| {
            for row in first..first + rows {
                let text = |column: usize| texts[column].as_ref().and_then(|all| all.get(row));
                let number = |column: usize| numbers[column].as_ref().and_then(|all| all.get(row));
                pairing.add(&visit_of(text, number))?;
            }
            Ok(())
        })
    }

    /// Pairs all visits. There is nothing left to add to.
    fn finish(&mut self, py: Python<'_>) -> PyResult<VisitHistory> {
        let pairing = self.0.take().ok_or_else(gone)?;
        Ok(VisitHistory(py.detach(|| pairing.finish())?))
    }
}

impl VisitPairing {
    fn open(&mut self) -> PyResult<&mut Pairing> {
        self.0.as_mut().ok_or_else(gone)
    }
}

fn gone() -> PyErr {
    PyRuntimeError::new_err("it is finished")
}

const TEXTS: usize = 10;
const NUMBERS: usize = 5;

/// A visit whose texts were taken out of Python.
struct Taken {
    texts: [Option<Vec<u8>>; TEXTS],
    numbers: [Option<i64>; NUMBERS],
}

impl Taken {
    fn of(row: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let mut taken = Self {
            texts: Default::default(),
            numbers: [None; NUMBERS],
        };
        if row.len() != TEXTS + NUMBERS {
            return Err(PyValueError::new_err("expected a value for each field"));
        }
        for (place, value) in row.iter().enumerate() {
            if value.is_none() {
                continue;
            }
            match taken.numbers.get_mut(place.wrapping_sub(TEXTS)) {
                Some(number) => *number = Some(value.extract()?),
                None => taken.texts[place] = Some(text(&value)?.into_owned()),
            }
        }
        Ok(taken)
    }

    fn visit(&self) -> Visit<'_> {
        visit_of(
            |place| self.texts[place].as_deref(),
            |place| self.numbers[place],
        )
    }
}

/// A visit of its columns, in the order of `unlost.refresh.visit.FIELDS`.
fn visit_of<'a>(
    text: impl Fn(usize) -> Option<&'a [u8]>,
    number: impl Fn(usize) -> Option<i64>,
) -> Visit<'a> {
    Visit {
        uri: text(0).unwrap_or_default(),
        digest: text(1),
        text_digest: text(2),
        etag: text(3),
        last_modified: text(4),
        date: text(5),
        repr_digest: text(6),
        cache_control: text(7),
        expires: text(8),
        server: text(9),
        time: number(0).unwrap_or_default(),
        status: number(1).unwrap_or_default(),
        content_length: number(2),
        age: number(3),
        weight: number(4),
    }
}

struct Texts<'a> {
    valid: Option<&'a [u8]>,
    ends: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Texts<'a> {
    fn of(column: &'a TextColumn<'_>) -> Self {
        let (valid, ends, bytes) = column;
        Self {
            valid: valid.as_ref().map(|bits| bits.as_bytes()),
            ends: ends.as_bytes(),
            bytes: bytes.as_bytes(),
        }
    }

    fn get(&self, row: usize) -> Option<&'a [u8]> {
        if !is_valid(self.valid, row) {
            return None;
        }
        let end = |place: usize| {
            let bytes = self.ends.get(place * 4..place * 4 + 4)?;
            usize::try_from(i32::from_le_bytes(bytes.try_into().ok()?)).ok()
        };
        self.bytes.get(end(row)?..end(row + 1)?)
    }
}

struct Numbers<'a> {
    valid: Option<&'a [u8]>,
    bytes: &'a [u8],
}

impl<'a> Numbers<'a> {
    fn of(column: &'a NumberColumn<'_>) -> Self {
        let (valid, bytes) = column;
        Self {
            valid: valid.as_ref().map(|bits| bits.as_bytes()),
            bytes: bytes.as_bytes(),
        }
    }

    fn get(&self, row: usize) -> Option<i64> {
        if !is_valid(self.valid, row) {
            return None;
        }
        let bytes = self.bytes.get(row * 8..row * 8 + 8)?;
        Some(i64::from_le_bytes(bytes.try_into().ok()?))
    }
}

fn is_valid(bits: Option<&[u8]>, row: usize) -> bool {
    bits.is_none_or(|bits| {
        bits.get(row / 8)
            .is_some_and(|byte| byte & (1 << (row % 8)) != 0)
    })
}

/// Missed, saved, missed squared, missed times changed, hosts with a missed one.
type StepFields = (f64, f64, f64, f64, u32);
/// Name, visits, with a tag, with a date, server, the nine cells.
type HostFields = (String, u32, u32, u32, Option<String>, Vec<CellCount>);

/// Name; then group, changed and all pairs of each group.
type HostSeen = (String, Vec<(usize, u64, u64)>);

/// All pairs of a log.
#[pyclass(frozen, module = "unlost._core")]
struct VisitHistory(History);

#[pymethods]
impl VisitHistory {
    /// What became of the visits, by name.
    fn tally(&self) -> Vec<(&'static str, u64)> {
        let tally = self.0.tally();
        vec![
            ("successful", tally.successful),
            ("not_modified", tally.not_modified),
            ("failed", tally.failed),
            ("without_digest", tally.without_digest),
            ("without_host", tally.without_host),
            ("duplicate", tally.duplicate),
            ("out_of_order", tally.out_of_order),
            ("tagged", tally.tagged),
            ("dated", tally.dated),
            ("pages", tally.pages),
            ("pairs", self.0.len() as u64),
            ("hosts", self.0.hosts().len() as u64),
        ]
    }

    fn matrix(&self, py: Python<'_>, by_text: bool) -> Vec<CellCount> {
        py.detach(|| self.0.matrix(by_text).to_vec())
    }

    /// For each fold, the cells that have pairs: number, changed, unchanged.
    fn cells(
        &self,
        py: Python<'_>,
        by_text: bool,
        fields: u8,
        folds: usize,
    ) -> Vec<Vec<(usize, u64, u64)>> {
        let all = py.detach(|| self.0.cells(by_text, Fields(fields), folds));
        let of_fold = |cells: Vec<CellCount>| {
            let numbered = cells.into_iter().enumerate();
            let seen = numbered.filter(|(_, (changed, unchanged))| changed + unchanged > 0);
            seen.map(|(cell, (changed, unchanged))| (cell, changed, unchanged))
                .collect()
        };
        all.into_iter().map(of_fold).collect()
    }

    fn spread(&self, py: Python<'_>, by_text: bool, fields: u8) -> Vec<[f64; 5]> {
        py.detach(|| self.0.spread(by_text, Fields(fields)).to_vec())
    }

    /// The hosts from one number up to another, each with what it did.
    fn seen(
        &self,
        first: usize,
        end: usize,
        by_text: bool,
        fields: u8,
        since: u32,
    ) -> Vec<HostSeen> {
        let all = self.0.hosts();
        let end = end.min(all.len());
        let seen = |number: usize| {
            let groups = self.0.host_groups(number, by_text, Fields(fields), since);
            (all[number].name.to_string(), groups)
        };
        (first.min(end)..end).map(seen).collect()
    }

    /// The hosts with a page that changed while date or tag stayed the same: date lies, date claims, tag lies, claims.
    fn lying(&self, py: Python<'_>, by_text: bool) -> Vec<(String, [u64; 4])> {
        py.detach(|| self.0.lying(by_text))
    }

    fn bytes_and_text(&self) -> [u64; 4] {
        self.0.bytes_and_text()
    }

    fn time_at(&self, py: Python<'_>, share: f64) -> u32 {
        py.detach(|| self.0.time_at(share))
    }

    fn intervals(&self, host: usize, by_text: bool) -> Vec<(u32, bool)> {
        if host < self.0.hosts().len() {
            self.0.intervals(host, by_text)
        } else {
            Vec::new()
        }
    }

    fn resample(
        &self,
        py: Python<'_>,
        by_text: bool,
        schemes: Vec<u16>,
        times: usize,
        seed: u64,
    ) -> Vec<(Span, Span)> {
        py.detach(|| self.0.resample(by_text, &schemes, times, seed))
    }

    /// All steps; then changed, unchanged, the sum of changed squared, and hosts.
    #[allow(clippy::too_many_arguments)]
    fn replay(
        &self,
        py: Python<'_>,
        means: Vec<Vec<f64>>,
        strengths: Vec<f64>,
        fields: u8,
        by_text: bool,
        split: u32,
    ) -> PyResult<(Vec<StepFields>, f64, f64, f64, u32)> {
        if strengths.len() != GROUPS
            || means.is_empty()
            || means.iter().any(|mean| mean.len() != CELLS)
        {
            return Err(PyValueError::new_err(
                "expected a strength for each group and a mean for each cell",
            ));
        }
        let learned = Learned {
            means: &means,
            strengths: &strengths,
            fields: Fields(fields),
            by_text,
            split,
        };
        let replay = py.detach(|| self.0.replay(&learned));
        let steps = replay.steps.iter().map(|step| {
            (
                step.missed,
                step.saved,
                step.missed_squared,
                step.missed_changed,
                step.missed_hosts,
            )
        });
        Ok((
            steps.collect(),
            replay.changed,
            replay.unchanged,
            replay.changed_squared,
            replay.hosts,
        ))
    }

    /// The hosts from one number up to another.
    fn hosts(&self, first: usize, end: usize, by_text: bool) -> Vec<HostFields> {
        let all = self.0.hosts();
        let end = end.min(all.len());
        let fields = |number: usize| {
            let host = &all[number];
            let server = host
                .server
                .map(|server| self.0.servers()[server as usize].to_string());
            let cells = self.0.host_cells(number, by_text).to_vec();
            (
                host.name.to_string(),
                host.visits,
                host.tagged,
                host.dated,
                server,
                cells,
            )
        };
        (first.min(end)..end).map(fields).collect()
    }

    /// How many hosts send a tag always, sometimes and never, by what their servers call themselves.
    fn tags_by_server(&self) -> Vec<(Option<String>, [u64; 3])> {
        let mut counts = vec![[0; 3]; self.0.servers().len() + 1];
        for host in self.0.hosts().iter().filter(|host| host.visits > 0) {
            let place = match host.tags() {
                Presence::Always => 0,
                Presence::Sometimes => 1,
                Presence::Never => 2,
            };
            counts[host
                .server
                .map_or(self.0.servers().len(), |server| server as usize)][place] += 1;
        }
        let names = self
            .0
            .servers()
            .iter()
            .map(|name| Some(name.to_string()))
            .chain([None]);
        names
            .zip(counts)
            .filter(|(_, counts)| counts.iter().sum::<u64>() > 0)
            .collect()
    }
}

/// The cell that one belongs to if only these fields are looked at, the one of the nine, and its group.
#[pyfunction]
fn project_cell(cell: usize, fields: u8) -> (usize, usize, usize) {
    let projected = Fields(fields).project(cell);
    (projected, base_cell(cell), group_of(projected))
}

/// The cell of two consecutive visits, each a tuple as `add_rows` takes it.
#[pyfunction]
fn visit_cell(last: &Bound<'_, PyTuple>, this: &Bound<'_, PyTuple>) -> PyResult<usize> {
    let (last, this) = (Taken::of(last)?, Taken::of(this)?);
    Ok(cell_of_visits(&last.visit(), &this.visit()))
}
