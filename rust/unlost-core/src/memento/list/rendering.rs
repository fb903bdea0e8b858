//! Serializes mementos in the formats of `TimeMap`s. Appends only the part that is repeated per memento.

use super::patterns::Url;
use super::{Mementos, digits};
use crate::memento::httpdate::{self, Digits};

/// A sink for text. Long texts are measured before they are written, so that nothing is reallocated.
pub trait TextSink {
    /// Appends a part.
    fn add(&mut self, part: &[u8]);
}

/// Counts the bytes that would be written.
#[derive(Debug, Default)]
pub struct LengthCounter(pub usize);

impl TextSink for LengthCounter {
    fn add(&mut self, part: &[u8]) {
        self.0 += part.len();
    }
}

/// The rest of a buffer of known length; text that does not fit is dropped.
#[derive(Debug)]
pub struct SliceWriter<'a>(pub &'a mut [u8]);

impl TextSink for SliceWriter<'_> {
    fn add(&mut self, part: &[u8]) {
        let room = std::mem::take(&mut self.0);
        let (here, rest) = room.split_at_mut(part.len().min(room.len()));
        here.copy_from_slice(&part[..here.len()]);
        self.0 = rest;
    }
}

/// Whether the first and last mementos are those of the whole `TimeMap`: others may be on other pages.
#[derive(Debug, Clone, Copy)]
pub struct ListEnds {
    /// The first memento is the first of the whole `TimeMap`.
    pub first: bool,
    /// The last memento is the last of the whole `TimeMap`.
    pub last: bool,
}

/// One memento in its written form.
struct Entry<'a> {
    datetime: Digits,
    archive: &'a str,
    url: Url<'a>,
}

impl Mementos {
    /// Link-format entries, each followed by a comma and a newline.
    pub fn link_entries(&self, out: &mut impl TextSink, ends: ListEnds) {
        self.write(out, |out, index, memento| {
            out.add(b"<");
            memento.url.write(out, |out, part| out.add(part.as_bytes()));
            out.add(b">; rel=\"");
            out.add(self.relation(index, ends));
            out.add(b"\"; datetime=\"");
            out.add(&httpdate::to_http(&memento.datetime));
            out.add(b"\",\n");
        });
    }

    /// The items of a JSON list, indented by six, separated by a comma and a newline.
    pub fn json_items(&self, out: &mut impl TextSink) {
        self.write(out, |out, index, memento| {
            let begin: &[u8] = if index == 0 { b"" } else { b",\n" };
            out.add(begin);
            out.add(b"      {\n        \"datetime\": \"");
            out.add(&httpdate::to_iso(&memento.datetime));
            out.add(b"\",\n        \"uri\": \"");
            memento.url.write(out, push_json);
            out.add(b"\"\n      }");
        });
    }

    /// Lines of a `TimeMap` in CDXJ.
    pub fn cdxj_lines(&self, out: &mut impl TextSink, ends: ListEnds) {
        self.write(out, |out, index, memento| {
            out.add(&memento.datetime);
            out.add(b" {\"uri\": \"");
            memento.url.write(out, push_json);
            out.add(b"\", \"rel\": \"");
            out.add(self.relation(index, ends));
            out.add(b"\", \"datetime\": \"");
            out.add(&httpdate::to_http(&memento.datetime));
            out.add(b"\"}\n");
        });
    }

    /// Lines of date, archive and URL, separated by spaces.
    pub fn text_lines(&self, out: &mut impl TextSink) {
        self.write(out, |out, _, memento| {
            out.add(&memento.datetime);
            out.add(b" ");
            out.add(memento.archive.as_bytes());
            out.add(b" ");
            memento.url.write(out, |out, part| out.add(part.as_bytes()));
            out.add(b"\n");
        });
    }

    fn write<T: TextSink>(&self, out: &mut T, write: impl Fn(&mut T, usize, Entry<'_>)) {
        for (index, row) in self.rows.iter().enumerate() {
            let entry = Entry {
                datetime: digits(row.date),
                archive: &self.archives[row.archive as usize],
                url: self.url(row),
            };
            write(out, index, entry);
        }
    }

    fn relation(&self, index: usize, ends: ListEnds) -> &'static [u8] {
        let is_first = ends.first && index == 0;
        let is_last = ends.last && index + 1 == self.len();
        match (is_first, is_last) {
            (true, true) => b"first last memento",
            (true, false) => b"first memento",
            (false, true) => b"last memento",
            (false, false) => b"memento",
        }
    }
}

/// URLs contain no quotes and no control characters, so the backslash is the only character to escape in JSON.
fn push_json<T: TextSink>(out: &mut T, text: &str) {
    for (index, part) in text.split('\\').enumerate() {
        if index > 0 {
            out.add(b"\\\\");
        }
        out.add(part.as_bytes());
    }
}
