//! Sorts more entries than fit in memory: sorted runs, then one merge. Ordered input makes one run, which is the result
//! without further work.

use std::io::Write;
use std::ops::Range;

use super::line_format::LineFormat;
use super::runs::{Run, Sorted};
use super::spill_buffer::SpillBuffer;
use super::table::host;
use super::{Entry, HoldingsError, Progress, Table};

/// The number of runs that are merged into one before another is begun: each takes an open file and a buffer.
const MAX_RUNS: usize = 64;

/// The number of runs that can be appended to; of the others, only the last.
const OPEN_RUNS: usize = 2;

/// Ordered entries leave the table when it is larger than this.
const FLUSH_BYTES: usize = 4 << 20;

/// Sorts entries and merges those with the same key.
pub(super) struct Sorter {
    form: LineFormat,
    /// The memory of the table; text in memory takes up to as much again.
    memory: usize,
    table: Table,
    /// Whether the hosts of the table came in order.
    is_ordered: bool,
    flush_at: usize,
    runs: Vec<Run>,
    /// The destination of the first run, until there is one.
    output: Option<SpillBuffer>,
    /// Whether there is one run, in that destination.
    is_in_output: bool,
}

impl Sorter {
    pub(super) fn new(fields: usize, memory: usize) -> Self {
        Self::with_form(LineFormat::Map { fields }, memory)
    }

    /// `form` is the line format of [`Sorter::write_to`].
    pub(super) fn with_form(form: LineFormat, memory: usize) -> Self {
        Self {
            form,
            memory,
            table: Table::default(),
            is_ordered: true,
            flush_at: FLUSH_BYTES.min(memory),
            runs: Vec::new(),
            output: None,
            is_in_output: false,
        }
    }

    /// Writes the first run, if there is none yet, to the final output: [`Sorter::is_output_complete`] returns whether
    /// everything is there.
    pub(super) fn set_output(&mut self, output: SpillBuffer) {
        self.output = Some(output);
    }

    pub(super) fn push(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        self.table.push(entry)?;
        if self.table.size() > self.memory {
            self.spill()?;
        }
        Ok(())
    }

    /// Takes the entries of a sorted table.
    pub(super) fn push_sorted(&mut self, table: &Table) -> Result<(), HoldingsError> {
        if let (Some(last), Some(first)) = (self.table.iter().next_back(), table.iter().next()) {
            self.is_ordered &= host(last.key) <= host(first.key);
        }
        self.push_part(table, 0)
    }

    fn push_part(&mut self, table: &Table, start: usize) -> Result<(), HoldingsError> {
        for entry in table.iter().skip(start) {
            self.table.push(&entry)?;
        }
        if self.is_ordered && self.table.size() > self.flush_at {
            self.flush_hosts()?;
        }
        if self.table.size() > self.memory {
            self.spill()?;
        }
        Ok(())
    }

    /// Takes the entries of a sorted table whose inner hosts are already formatted: if they continue a run, their lines
    /// are copied verbatim.
    pub(super) fn push_lines(
        &mut self,
        table: &Table,
        inner: Range<usize>,
        lines: &[u8],
    ) -> Result<(), HoldingsError> {
        if inner.is_empty() || !self.is_ordered {
            return self.push_sorted(table);
        }
        let before = self.table.iter().next_back();
        let is_ordered_host = before.is_none_or(|last| host(last.key) <= host(table.get(0).key));
        if !is_ordered_host {
            return self.push_sorted(table);
        }
        for entry in table.iter().take(inner.start) {
            self.table.push(&entry)?;
        }
        self.table.sort()?;
        let (first, last) = (
            self.table.get(0).key,
            self.table.get(self.table.len() - 1).key,
        );
        let run = self
            .runs
            .iter_mut()
            .take(OPEN_RUNS)
            .find(|run| run.last.as_slice() < first);
        match run {
            Some(run) if last < table.get(inner.start).key => {
                run.append(&self.table, 0..self.table.len(), self.form)?;
                run.text.append(|text| text.extend_from_slice(lines))?;
                run.last.clear();
                run.last.extend_from_slice(table.get(inner.end - 1).key);
                self.table.clear();
                self.push_part(table, inner.end)
            }
            _ => self.push_part(table, inner.start),
        }
    }

    /// Takes an entry that probably belongs after the last, or near it.
    pub(super) fn push_near(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        self.table.push(entry)?;
        // Keys in order have hosts in order: checked only if they are not.
        if self.is_ordered && !self.table.is_sorted() && self.table.len() > 1 {
            let last = self.table.get(self.table.len() - 2);
            self.is_ordered = host(last.key) <= host(entry.key);
        }
        if self.is_ordered && self.table.size() > self.flush_at {
            self.flush_hosts()?;
        }
        if self.table.size() > self.memory {
            self.spill()?;
        }
        Ok(())
    }

    /// Writes all hosts but the last, of which more may come.
    fn flush_hosts(&mut self) -> Result<(), HoldingsError> {
        self.table.sort()?;
        let last = self.table.iter().next_back().map(|entry| host(entry.key));
        let open = self
            .table
            .iter()
            .rev()
            .take_while(|entry| Some(host(entry.key)) == last)
            .count();
        let settled = self.table.len() - open;
        if settled > 0 {
            let table = std::mem::take(&mut self.table);
            self.write_run(&table, settled)?;
            for entry in table.iter().skip(settled) {
                self.table.push(&entry)?;
            }
        }
        // Not before the table has doubled, or a large host would be searched repeatedly.
        self.flush_at = (2 * self.table.size()).max(FLUSH_BYTES.min(self.memory));
        Ok(())
    }

    fn spill(&mut self) -> Result<(), HoldingsError> {
        self.table.sort()?;
        let mut table = std::mem::take(&mut self.table);
        self.write_run(&table, table.len())?;
        table.clear();
        self.table = table;
        self.is_ordered = true;
        Ok(())
    }

    /// Appends the first entries of a sorted table to the runs that they continue, and begins another run with the
    /// rest. Mostly ordered input thereby makes one long run, and a few late keys another.
    fn write_run(&mut self, table: &Table, count: usize) -> Result<(), HoldingsError> {
        let mut left = count;
        // Only to some runs, since each needs a write buffer.
        let open = self.runs.len().min(OPEN_RUNS);
        for run in (0..open).chain(open.max(self.runs.len().saturating_sub(1))..self.runs.len()) {
            let run = &mut self.runs[run];
            let late = table.late_keys(left, &run.last);
            run.append(table, late..left, self.form)?;
            left = late;
        }
        if left == 0 {
            return Ok(());
        }
        if self.runs.len() == MAX_RUNS {
            self.merge_runs()?;
        }
        if let Some(run) = self.runs.last_mut() {
            run.text.spill_to_file()?;
        }
        let output = self.output.take();
        self.is_in_output = output.is_some();
        let mut run = Run {
            text: output.unwrap_or_else(|| SpillBuffer::new(self.memory)),
            last: Vec::new(),
        };
        run.append(table, 0..left, self.form)?;
        self.runs.push(run);
        Ok(())
    }

    fn merge_runs(&mut self) -> Result<(), HoldingsError> {
        let mut text = SpillBuffer::new(self.memory);
        let mut last = Vec::new();
        let form = self.form;
        let mut merge = Sorted::of_runs(std::mem::take(&mut self.runs), form)?;
        while let Some(entry) = merge.next_entry()? {
            text.append(|text| form.write(&entry, text))?;
            last.clear();
            last.extend_from_slice(entry.key);
        }
        self.runs.push(Run { text, last });
        self.is_in_output = false;
        Ok(())
    }

    /// Ends sorting; returns whether everything is in the final output. If not, that may contain anything.
    pub(super) fn is_output_complete(&mut self) -> Result<bool, HoldingsError> {
        self.spill()?;
        if let (true, [run]) = (self.is_in_output, self.runs.as_mut_slice()) {
            run.text.spill_to_file()?;
            return Ok(true);
        }
        Ok(self.runs.is_empty())
    }

    /// All entries, in order.
    pub(super) fn finish(mut self) -> Result<Sorted, HoldingsError> {
        if self.runs.is_empty() {
            self.table.sort()?;
            return Ok(Sorted::of_table(self.table));
        }
        self.spill()?;
        Sorted::of_runs(self.runs, self.form)
    }

    /// Writes all entries as lines.
    pub(super) fn write_to(
        mut self,
        out: &mut impl Write,
        progress: &Progress,
    ) -> Result<(), HoldingsError> {
        self.spill()?;
        let form = self.form;
        if self.runs.len() <= 1 {
            if let Some(run) = self.runs.pop() {
                run.text.copy_to(out)?;
            }
            return Ok(());
        }
        let mut sorted = self.finish()?;
        let mut line = Vec::new();
        while let Some(entry) = sorted.next_entry()? {
            progress.check_cancelled()?;
            line.clear();
            form.write(&entry, &mut line);
            out.write_all(&line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Frequency;
    use super::*;
    use std::collections::BTreeMap;

    fn drain(mut sorted: Sorted) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        while let Some(entry) = sorted.next_entry().expect("disk") {
            let key = String::from_utf8(entry.key.to_vec()).expect("ascii");
            found.push((key, entry.frequency.mementos.value().expect("known")));
        }
        found
    }

    #[test]
    fn entries_are_sorted_with_any_memory_limit() {
        let mut expected = BTreeMap::new();
        let keys: Vec<String> = (0..5000_u64)
            .map(|i| format!("com,h{:03})/{}", i * 7919 % 300, i * 104_729 % 1000))
            .collect();
        for key in &keys {
            *expected.entry(key.clone()).or_insert(0) += 2;
        }
        let expected: Vec<(String, u64)> = expected.into_iter().collect();
        for memory in [0, 1000, 100_000, 1 << 30] {
            let mut sorter = Sorter::new(1, memory);
            for key in &keys {
                let entry = Entry::new(key.as_bytes(), Frequency::of(2));
                sorter.push(&entry).expect("disk");
            }
            assert_eq!(drain(sorter.finish().expect("disk")), expected, "{memory}");
        }
    }

    #[test]
    fn ordered_input_makes_one_run() {
        let mut sorter = Sorter::new(1, 20_000);
        for block in 0..200 {
            let mut table = Table::default();
            for i in 0..50 {
                let key = format!("com,h{:04})/{}", block / 3, i);
                table
                    .push(&Entry::new(key.as_bytes(), Frequency::of(1)))
                    .expect("small");
            }
            table.sort().expect("small");
            sorter.push_sorted(&table).expect("disk");
        }
        assert_eq!(sorter.runs.len(), 1);
        assert_eq!(drain(sorter.finish().expect("disk")).len(), 67 * 50);
    }

    #[test]
    fn late_keys_make_one_more_run() {
        let mut sorter = Sorter::new(1, 20_000);
        for i in 0..20_000 {
            let key = format!("com,h)/{i:06}");
            sorter
                .push_near(&Entry::new(key.as_bytes(), Frequency::of(1)))
                .expect("disk");
            if i % 1000 == 999 {
                let key = format!("com,h)/{:06}-late", i - 900);
                sorter
                    .push_near(&Entry::new(key.as_bytes(), Frequency::of(1)))
                    .expect("disk");
            }
        }
        assert_eq!(sorter.runs.len(), 2);
        let found = drain(sorter.finish().expect("disk"));
        assert_eq!(found.len(), 20_020);
        assert!(found.is_sorted());
    }
}
