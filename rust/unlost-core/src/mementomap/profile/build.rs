//! Builds several profiles in one pass over the counted keys.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::key_cut::KeyCut;
use super::line::Holding;
use crate::mementomap::line_format::LineFormat;
use crate::mementomap::runs::Sorted;
use crate::mementomap::sorter::Sorter;
use crate::mementomap::spill_buffer::SpillBuffer;
use crate::mementomap::{Builder, Entry, Frequency, HoldingsError, Progress, Table};
use crate::uri::{Policy, Segments, Suffixes};

/// Memory of a batch of keys for the threads, in bytes.
const BATCH_BYTES: usize = 256 << 10;

/// Bytes per write.
const WRITE_BYTES: usize = 1 << 20;

/// The output format of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileForm {
    /// `key {"frequency": 14, "spread": 1}`, one per line.
    Lines,
    /// `"key": {"frequency": 14, "spread": 1}`, separated by commas: members of an object.
    Members,
}

/// Counts all URI-Rs of a builder with queries under the keys of each policy, and writes one profile each. Existing
/// content of the files stays; they must be open for reading too, unless they are pipes.
pub fn write_profiles(
    builder: Builder,
    profiles: Vec<(Policy, File)>,
    suffixes: &Suffixes,
    form: ProfileForm,
    progress: &Progress,
) -> Result<(), HoldingsError> {
    let (uris, build_options) = builder.into_uri_counts();
    let share = build_options.memory / profiles.len().max(1);
    let threads = build_options.threads.clamp(1, profiles.len().max(1));
    let mut shares: Vec<Vec<PolicyCounter>> = (0..threads).map(|_| Vec::new()).collect();
    for (i, (policy, out)) in profiles.into_iter().enumerate() {
        shares[i % threads].push(PolicyCounter::new(policy, share, form, out)?);
    }
    let mut sorted = uris.finish()?;
    thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut workers = Vec::new();
        for counters in shares {
            // One batch waits while another is processed.
            let (send, receive) = sync_channel(1);
            senders.push(send);
            workers.push(scope.spawn(move || count(counters, &receive, suffixes, form, progress)));
        }
        let sent = send_all(&mut sorted, &senders, progress);
        if sent.is_err() {
            // Stops the counters, which would otherwise treat the incomplete input as complete.
            progress.cancel();
        }
        drop(senders);
        let mut result = sent;
        for worker in workers {
            let done = worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // The error of a failed thread is more specific than that of a cancelled one.
            if matches!(result, Ok(()) | Err(HoldingsError::Cancelled)) && done.is_err() {
                result = done;
            }
        }
        result
    })
}

fn send_all(
    sorted: &mut Sorted,
    senders: &[SyncSender<Arc<Table>>],
    progress: &Progress,
) -> Result<(), HoldingsError> {
    let mut batch = Table::default();
    let mut at_end = false;
    while !at_end {
        progress.check_cancelled()?;
        match sorted.next_entry()? {
            Some(entry) => batch.push(&entry)?,
            None => at_end = true,
        }
        if at_end || batch.size() > BATCH_BYTES {
            let whole = Arc::new(std::mem::take(&mut batch));
            for sender in senders {
                // A thread that has ended reports why when it is joined.
                if sender.send(Arc::clone(&whole)).is_err() {
                    return Err(HoldingsError::Cancelled);
                }
            }
        }
    }
    Ok(())
}

/// Counts the keys of all batches, then writes the profiles.
fn count(
    mut counters: Vec<PolicyCounter>,
    batches: &Receiver<Arc<Table>>,
    suffixes: &Suffixes,
    form: ProfileForm,
    progress: &Progress,
) -> Result<(), HoldingsError> {
    let mut cut = KeyCut::default();
    for batch in batches {
        progress.check_cancelled()?;
        for entry in batch.iter() {
            if entry.key.ends_with(b"*") {
                return Err(HoldingsError::Wildcard {
                    key: entry.key.to_vec(),
                });
            }
            if !entry.frequency.is_held() {
                continue;
            }
            let captures = entry.frequency.mementos.value().unwrap_or(0);
            cut.take(entry.key, suffixes);
            for counter in &mut counters {
                counter.count(entry.key, captures, &cut, suffixes)?;
            }
        }
    }
    for counter in counters {
        progress.check_cancelled()?;
        counter.write(form, progress)?;
    }
    Ok(())
}

/// Counts under the keys of one policy.
struct PolicyCounter {
    policy: Policy,
    /// The current key; empty if there is none.
    key: Vec<u8>,
    captures: u64,
    /// Whether some keys are followed by a space and a port.
    has_ports: bool,
    sorter: Sorter,
    out: File,
    /// Where the profile begins in the file, if ordered keys are written there immediately.
    stream_start: Option<u64>,
}

impl PolicyCounter {
    fn new(
        policy: Policy,
        memory: usize,
        form: ProfileForm,
        mut out: File,
    ) -> Result<Self, HoldingsError> {
        let is_file = out.metadata()?.is_file();
        let mut sorter = Sorter::with_form(LineFormat::Profile, memory);
        let mut stream_start = None;
        if is_file && form == ProfileForm::Lines {
            sorter.set_output(SpillBuffer::appending_to(out.try_clone()?)?);
            stream_start = Some(out.stream_position()?);
        }
        Ok(Self {
            policy,
            key: Vec::new(),
            captures: 0,
            has_ports: false,
            sorter,
            out,
            stream_start,
        })
    }

    fn count(
        &mut self,
        uri: &[u8],
        captures: u64,
        cut: &KeyCut,
        suffixes: &Suffixes,
    ) -> Result<(), HoldingsError> {
        let mut slow = Vec::new();
        let parts = cut.key(self.policy, uri).unwrap_or_else(|| {
            self.policy
                .write_key(&Segments::of(uri), suffixes, &mut slow);
            [&slow, b"", b"", b""]
        });
        self.has_ports |= !parts[3].is_empty();
        let mut rest = self.key.as_slice();
        let is_same = parts.iter().all(|part| {
            rest.strip_prefix(*part).is_some_and(|after| {
                rest = after;
                true
            })
        });
        if is_same && rest.is_empty() {
            self.captures += captures;
            return Ok(());
        }
        self.flush()?;
        for part in parts {
            self.key.extend_from_slice(part);
        }
        self.captures = captures;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), HoldingsError> {
        if !self.key.is_empty() {
            let overflow = || HoldingsError::Overflow {
                key: self.key.clone(),
            };
            let frequency = Frequency::checked(self.captures).ok_or_else(overflow)?;
            self.sorter.push_near(&Entry::new(&self.key, frequency))?;
            self.key.clear();
        }
        Ok(())
    }

    fn write(mut self, form: ProfileForm, progress: &Progress) -> Result<(), HoldingsError> {
        self.flush()?;
        let Some(stream_start) = self.stream_start else {
            let mut out = BufWriter::with_capacity(WRITE_BYTES, self.out);
            write_all(self.sorter.finish()?, form, progress, |line| {
                Ok(out.write_all(line)?)
            })?;
            return Ok(out.flush()?);
        };
        if self.sorter.is_output_complete()? && !self.has_ports {
            return Ok(());
        }
        let mut text = SpillBuffer::new(WRITE_BYTES);
        write_all(self.sorter.finish()?, form, progress, |line| {
            Ok(text.append(|text| text.extend_from_slice(line))?)
        })?;
        self.out.set_len(stream_start)?;
        self.out.seek(SeekFrom::Start(stream_start))?;
        Ok(text.copy_to(&mut self.out)?)
    }
}

/// Writes the lines of a profile, in which the captures of a key are listed by port.
fn write_all(
    mut sorted: Sorted,
    form: ProfileForm,
    progress: &Progress,
    write: impl FnMut(&[u8]) -> Result<(), HoldingsError>,
) -> Result<(), HoldingsError> {
    let mut writer = Writer {
        form,
        is_first: true,
        line: Vec::new(),
        write,
    };
    let mut key = Vec::new();
    let mut holding = Holding::default();
    while let Some(entry) = sorted.next_entry()? {
        progress.check_cancelled()?;
        let (shown, port) = entry.surt_and_extra();
        if shown != key {
            writer.write(&key, &holding)?;
            key.clear();
            key.extend_from_slice(shown);
            holding = Holding {
                spread: 1,
                ..Holding::default()
            };
        }
        add(&mut holding, port, &entry)?;
    }
    writer.write(&key, &holding)
}

/// Adds the holdings of a port, `:81`, or those without one.
fn add(holding: &mut Holding, port: &[u8], entry: &Entry<'_>) -> Result<(), HoldingsError> {
    let captures = entry.frequency.mementos.value().unwrap_or(0);
    let more = Holding {
        frequency: captures,
        ..Holding::default()
    };
    if !holding.add(&more) {
        return Err(HoldingsError::Overflow {
            key: entry.key.to_vec(),
        });
    }
    // Ports of normalized keys are numbers of 16 bits.
    let digits = std::str::from_utf8(port.get(1..).unwrap_or_default());
    if let Some(port) = digits.ok().and_then(|digits| digits.parse().ok()) {
        holding.add_port(port, captures);
    }
    Ok(())
}

struct Writer<W> {
    form: ProfileForm,
    is_first: bool,
    line: Vec<u8>,
    write: W,
}

impl<W: FnMut(&[u8]) -> Result<(), HoldingsError>> Writer<W> {
    fn write(&mut self, key: &[u8], holding: &Holding) -> Result<(), HoldingsError> {
        if key.is_empty() {
            return Ok(());
        }
        self.line.clear();
        if self.form == ProfileForm::Lines {
            holding.write(key, &mut self.line);
        } else {
            if !self.is_first {
                self.line.extend_from_slice(b",\n");
            }
            self.is_first = false;
            write_text(key, &mut self.line);
            self.line.push(b':');
            holding.write(b"", &mut self.line);
            self.line.pop();
        }
        (self.write)(&self.line)
    }
}

/// Appends a key as a JSON string. Normalized keys are ASCII without control characters.
fn write_text(key: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for char in String::from_utf8_lossy(key).chars() {
        if matches!(char, '"' | '\\') {
            out.push(b'\\');
        }
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
    out.push(b'"');
}
