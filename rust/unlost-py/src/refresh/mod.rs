//! Visits and their history, as explained in `unlost.refresh.history`.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use unlost_core::refresh::{self, Fields, base_cell, cell_of_visits, group_of};

use columns::{NUMBERS, NumberColumn, Numbers, TEXTS, Taken, TextColumn, Texts, visit_of};
use history::VisitHistory;

mod columns;
mod history;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<VisitPairer>()?;
    module.add_class::<VisitHistory>()?;
    module.add_function(wrap_pyfunction!(project_cell, module)?)?;
    module.add_function(wrap_pyfunction!(visit_cell, module)?)
}

/// Takes visits; `finish` returns their history.
#[pyclass(module = "unlost._core")]
struct VisitPairer(Option<refresh::VisitPairer>);

#[pymethods]
impl VisitPairer {
    #[new]
    #[pyo3(signature = (partition_bytes = None))]
    fn new(partition_bytes: Option<usize>) -> Self {
        Self(Some(partition_bytes.map_or_else(
            refresh::VisitPairer::default,
            refresh::VisitPairer::new,
        )))
    }

    /// Takes tuples with the fields of `unlost.refresh.visit.FIELDS` in order.
    fn add_rows(&mut self, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let pairer = self.open()?;
        for row in rows.try_iter()? {
            let row = row?.cast_into::<PyTuple>()?;
            pairer.add(&Taken::of(&row)?.visit())?;
        }
        Ok(())
    }

    /// Takes Arrow columns: texts and numbers, in the order of the fields.
    fn add_columns(
        &mut self,
        py: Python<'_>,
        rows: usize,
        first: usize,
        texts: Vec<Option<TextColumn<'_>>>,
        numbers: Vec<Option<NumberColumn<'_>>>,
    ) -> PyResult<()> {
        let pairer = self.open()?;
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
            pairer.add_many(rows, |number| {
                let row = first + number;
                let text = |column: usize| texts[column].as_ref().and_then(|all| all.get(row));
                let count = |column: usize| numbers[column].as_ref().and_then(|all| all.get(row));
                visit_of(text, count)
            })?;
            Ok(())
        })
    }

    /// Pairs all visits. Nothing can be added afterwards.
    fn finish(&mut self, py: Python<'_>) -> PyResult<VisitHistory> {
        let pairer = self.0.take().ok_or_else(already_finished)?;
        Ok(VisitHistory(py.detach(|| pairer.finish())?))
    }
}

impl VisitPairer {
    fn open(&mut self) -> PyResult<&mut refresh::VisitPairer> {
        self.0.as_mut().ok_or_else(already_finished)
    }
}

fn already_finished() -> PyErr {
    PyRuntimeError::new_err("it is finished")
}

/// Projects a cell to these fields: returns the projected cell, its base cell (of the nine), and its group.
#[pyfunction]
fn project_cell(cell: usize, fields: u8) -> (usize, usize, usize) {
    let projected = Fields(fields).project(cell);
    (projected, base_cell(cell), group_of(projected))
}

/// The cell of two consecutive visits, each a tuple as for `add_rows`.
#[pyfunction]
fn visit_cell(last: &Bound<'_, PyTuple>, this: &Bound<'_, PyTuple>) -> PyResult<usize> {
    let (last, this) = (Taken::of(last)?, Taken::of(this)?);
    Ok(cell_of_visits(&last.visit(), &this.visit()))
}
