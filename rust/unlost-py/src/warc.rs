//! Bindings of `unlost_core::warc`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use flate2::read::DeflateDecoder;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use unlost_core::warc::{Event, Problem, Record, Scanner, StoredRecord};

use crate::counted_file::{Counted, Counter, Part};

/// Records and problems per batch: enough to make the GIL cheap, few enough to stay small.
const BATCH: usize = 256;

/// The approximate text size of a batch: headers may be long, and many of them must not be in memory at once.
const BATCH_BYTES: usize = 1 << 20;

/// The approximate input and decoded size per batch: between batches a thread that is not the main one, which receives
/// no signals, can be stopped.
const BATCH_WORK: u64 = 1 << 26;

/// The interval of checks for Ctrl-C. A check has to wait for other threads, which run Python meanwhile.
const CHECK_AFTER: Duration = Duration::from_millis(50);

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<WarcBody>()?;
    module.add_class::<WarcRecord>()?;
    module.add_class::<WarcScanner>()
}

/// A record of an archive file without its body; see `unlost.warc.reader`.
#[pyclass(frozen, get_all, module = "unlost._core")]
struct WarcRecord {
    offset: u64,
    skip: u64,
    length: Option<u64>,
    r#type: String,
    uri: Option<String>,
    date: Option<String>,
    is_arc: bool,
    content_type: Option<String>,
    digest: Option<String>,
    status: Option<u16>,
    mime: Option<String>,
    location: Option<String>,
    refers_to_uri: Option<String>,
    refers_to_date: Option<String>,
    id: Option<String>,
    is_truncated: bool,
    is_short: bool,
    /// Of the decoded body: SHA-1, length, and whether it is truncated.
    body: Option<([u8; 20], u64, bool)>,
    last_modified: Option<String>,
    payload_type: Option<String>,
}

/// The total size of the fields of a record that can be long.
fn weight(record: &Record) -> usize {
    [
        &record.uri,
        &record.date,
        &record.content_type,
        &record.digest,
        &record.mime,
        &record.location,
        &record.refers_to_uri,
        &record.refers_to_date,
        &record.id,
    ]
    .into_iter()
    .flatten()
    .chain([&record.kind])
    .chain(record.details.iter().flat_map(|details| {
        [&details.last_modified, &details.payload_type]
            .into_iter()
            .flatten()
    }))
    .map(String::len)
    .sum()
}

impl From<Record> for WarcRecord {
    fn from(record: Record) -> Self {
        let details = record.details.map(|details| *details).unwrap_or_default();
        let digest = details.body_digest;
        Self {
            body: digest.map(|digest| (digest, details.body_len, details.is_broken)),
            last_modified: details.last_modified,
            payload_type: details.payload_type,
            offset: record.offset,
            skip: record.skip,
            length: record.length,
            r#type: record.kind,
            uri: record.uri,
            date: record.date,
            is_arc: record.is_arc,
            content_type: record.content_type,
            digest: record.digest,
            status: record.status,
            mime: record.mime,
            location: record.location,
            refers_to_uri: record.refers_to_uri,
            refers_to_date: record.refers_to_date,
            id: record.id,
            is_truncated: record.is_truncated,
            is_short: record.is_short,
        }
    }
}

/// A deflated part of a file, whose length must be as declared.
struct Inflated<R> {
    part: DeflateDecoder<R>,
    left: u64,
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(out.len());
        if most == 0 {
            return Ok(0);
        }
        let count = match self.part.read(&mut out[..most]) {
            // The deflated data ends early, but the file is not truncated: other members of the ZIP follow.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => 0,
            other => other?,
        };
        self.left -= count as u64;
        if count == 0 {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        Ok(count)
    }
}

/// A file whose reading Ctrl-C interrupts, even within a long record.
struct Interruptible<R> {
    source: R,
    checked: Instant,
}

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.checked.elapsed() >= CHECK_AFTER {
            Python::attach(|py| py.check_signals()).map_err(std::io::Error::other)?;
            self.checked = Instant::now();
        }
        self.source.read(out)
    }
}

type ProblemFields = (&'static str, u64, String);

/// Scans an archive file: WarcScanner(path, digests=True, types=None, start=0, length=None, inflated=None,
/// bodies=False).
///
/// With `bodies`, pages have the digest and length of their bodies, and two more header fields. next_batch() returns
/// the next records, of the given types only, and problems as (kind, offset, message); None at the end. `start` and
/// `length` select a part of the file, and `inflated` is its length after inflating if it is deflated: for the members
/// of a ZIP. `position` is the offset in the file up to which it was read. Raises OSError if the file cannot be read.
/// skipped_by_type() returns the number of skipped records by type so far. Thread-safe.
#[pyclass(frozen, module = "unlost._core")]
struct WarcScanner {
    scanner: Mutex<Scanner<Box<dyn Read + Send>>>,
    types: Option<Vec<String>>,
    skipped: Mutex<BTreeMap<String, u64>>,
    read: Counter,
}

/// Types of records that are counted separately when skipped; the others are counted as `other`.
const TYPES: [&str; 8] = [
    "warcinfo",
    "request",
    "metadata",
    "conversion",
    "continuation",
    "response",
    "resource",
    "revisit",
];

#[pymethods]
impl WarcScanner {
    #[new]
    #[pyo3(signature = (path, digests=true, types=None, start=0, length=None, inflated=None, bodies=false))]
    #[allow(clippy::too_many_arguments)] // keyword arguments in Python
    fn new(
        path: PathBuf,
        digests: bool,
        types: Option<Vec<String>>,
        start: u64,
        length: Option<u64>,
        inflated: Option<u64>,
        bodies: bool,
    ) -> PyResult<Self> {
        let part = Part::new(File::open(path)?, start, length.unwrap_or(u64::MAX))?;
        let part = Counted::new(part, start);
        let read = part.counter();
        let part = Interruptible {
            source: part,
            checked: Instant::now(),
        };
        let source: Box<dyn Read + Send> = match inflated {
            Some(left) => Box::new(Inflated {
                part: DeflateDecoder::new(part),
                left,
            }),
            None => Box::new(part),
        };
        let mut scanner = Scanner::new(source, digests)?;
        if bodies {
            scanner = scanner.with_bodies();
        }
        Ok(Self {
            scanner: Mutex::new(scanner),
            types,
            skipped: Mutex::default(),
            read,
        })
    }

    #[getter]
    fn position(&self) -> u64 {
        self.read.get()
    }

    fn skipped_by_type(&self) -> BTreeMap<String, u64> {
        self.skipped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn next_batch(
        &self,
        py: Python<'_>,
    ) -> PyResult<Option<(Vec<WarcRecord>, Vec<ProblemFields>)>> {
        let (records, problems, is_over) = py.detach(|| self.scan())?;
        if is_over && records.is_empty() && problems.is_empty() {
            return Ok(None);
        }
        let records = records.into_iter().map(|record| WarcRecord::from(*record));
        let problems = problems
            .into_iter()
            .map(|problem| (problem.kind, problem.offset, problem.message));
        Ok(Some((records.collect(), problems.collect())))
    }
}

impl WarcScanner {
    fn count_skipped(&self, kind: &str) {
        let known = TYPES.iter().find(|&&each| each == kind);
        let kind = known.map_or("other", |kind| kind);
        let mut skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = skipped.get_mut(kind) {
            *count += 1;
        } else {
            skipped.insert(kind.to_owned(), 1);
        }
    }

    #[allow(clippy::vec_box)] // the type of the core's events
    fn scan(&self) -> std::io::Result<(Vec<Box<Record>>, Vec<Problem>, bool)> {
        let mut scanner = self.scanner.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut records, mut problems) = (Vec::new(), Vec::new());
        let (mut held, mut decoded) = (0, 0);
        let begin = self.read.get();
        while records.len() + problems.len() < BATCH
            && held < BATCH_BYTES
            && self.read.get() - begin + decoded < BATCH_WORK
        {
            match scanner.next_event()? {
                None => return Ok((records, problems, true)),
                Some(Event::Problem(problem)) => problems.push(problem),
                Some(Event::Record(record)) => {
                    decoded += record.details.as_ref().map_or(0, |each| each.body_len);
                    let types = self.types.as_ref();
                    if types.is_none_or(|types| types.contains(&record.kind)) {
                        held += weight(&record);
                        records.push(record);
                    } else {
                        self.count_skipped(&record.kind);
                    }
                }
            }
        }
        Ok((records, problems, false))
    }
}

/// One record with its body: WarcBody.open(path, offset, skip=0, start=0, length=None), None if no record begins there.
///
/// `start` and `length` select the part of the file in which the archive is stored, and offsets are relative to it.
/// fields: of its header, as (name, value). http_head: the HTTP header in its block, or None. read(count) returns the
/// next bytes of the body, none at its end; read_decoded(max_bytes) the decoded body, at most `max_bytes` bytes,
/// whether there are more, and whether the body is damaged; problems() the problems found so far. Thread-safe.
#[pyclass(frozen, module = "unlost._core")]
struct WarcBody {
    record: Mutex<StoredRecord<Part<File>>>,
}

impl WarcBody {
    fn record(&self) -> std::sync::MutexGuard<'_, StoredRecord<Part<File>>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl WarcBody {
    #[staticmethod]
    #[pyo3(signature = (path, offset, skip=0, start=0, length=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        offset: u64,
        skip: u64,
        start: u64,
        length: Option<u64>,
    ) -> PyResult<Option<Self>> {
        let record = py.detach(|| {
            let part = Part::new(File::open(path)?, start, length.unwrap_or(u64::MAX))?;
            StoredRecord::open(part, offset, skip)
        })?;
        Ok(record.map(|record| Self {
            record: Mutex::new(record),
        }))
    }

    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        let record = self.record();
        let fields = record.fields.iter();
        fields
            .map(|(name, value)| (name.clone(), PyBytes::new(py, value)))
            .collect()
    }

    #[getter]
    fn http_head<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let record = self.record();
        record.http_head.as_ref().map(|head| PyBytes::new(py, head))
    }

    fn read<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.record().read(count))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn read_decoded<'py>(
        &self,
        py: Python<'py>,
        max_bytes: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, bool, bool)> {
        let (body, is_cut) = py.detach(|| self.record().read_decoded(max_bytes))?;
        Ok((PyBytes::new(py, &body.head), is_cut, body.is_broken))
    }

    fn problems(&self) -> Vec<ProblemFields> {
        let record = self.record();
        let problems = record.problems().iter();
        let mut problems: Vec<ProblemFields> = problems
            .map(|problem| (problem.kind, problem.offset, problem.message.clone()))
            .collect();
        let missing = record.missing();
        if missing > 0 {
            let message = format!("{missing} bytes of the block are missing");
            problems.push(("short-block", record.offset(), message));
        }
        problems
    }
}
