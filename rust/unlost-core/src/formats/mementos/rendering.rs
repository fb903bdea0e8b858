//! Copies in the formats of `TimeMap`s, appended to a text: only the part that there is one of for each copy.

use super::{Copy, Mementos};
use crate::formats::httpdate;

/// Which of the copies are the first and last of all: some may be on other pages of a list.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    /// The first of these is the first of all.
    pub first: bool,
    /// The last of these is the last of all.
    pub last: bool,
}

impl Mementos {
    /// Entries in link-format, each with a comma and a newline behind it.
    pub fn link_entries(&self, out: &mut Vec<u8>, ends: Ends) {
        self.write(out, 96, |out, place, copy| {
            out.push(b'<');
            out.extend_from_slice(copy.uri.as_bytes());
            out.extend_from_slice(b">; rel=\"");
            out.extend_from_slice(self.relation(place, ends));
            out.extend_from_slice(b"\"; datetime=\"");
            out.extend_from_slice(&httpdate::to_http(&copy.datetime));
            out.extend_from_slice(b"\",\n");
        });
    }

    /// The items of a list in JSON, indented by six, with a comma and a newline between them.
    pub fn json_items(&self, out: &mut Vec<u8>) {
        self.write(out, 96, |out, place, copy| {
            let begin: &[u8] = if place == 0 { b"" } else { b",\n" };
            out.extend_from_slice(begin);
            out.extend_from_slice(b"      {\n        \"datetime\": \"");
            out.extend_from_slice(&httpdate::to_iso(&copy.datetime));
            out.extend_from_slice(b"\",\n        \"uri\": \"");
            push_json(out, copy.uri);
            out.extend_from_slice(b"\"\n      }");
        });
    }

    /// Lines of a `TimeMap` in CDXJ.
    pub fn cdxj_lines(&self, out: &mut Vec<u8>, ends: Ends) {
        self.write(out, 112, |out, place, copy| {
            out.extend_from_slice(&copy.datetime);
            out.extend_from_slice(b" {\"uri\": \"");
            push_json(out, copy.uri);
            out.extend_from_slice(b"\", \"rel\": \"");
            out.extend_from_slice(self.relation(place, ends));
            out.extend_from_slice(b"\", \"datetime\": \"");
            out.extend_from_slice(&httpdate::to_http(&copy.datetime));
            out.extend_from_slice(b"\"}\n");
        });
    }

    /// Lines of date, archive and address, with a space between them.
    pub fn text_lines(&self, out: &mut Vec<u8>) {
        self.write(out, 32, |out, _, copy| {
            out.extend_from_slice(&copy.datetime);
            out.push(b' ');
            out.extend_from_slice(copy.archive.as_bytes());
            out.push(b' ');
            out.extend_from_slice(copy.uri.as_bytes());
            out.push(b'\n');
        });
    }

    fn write(&self, out: &mut Vec<u8>, each: usize, write: impl Fn(&mut Vec<u8>, usize, Copy<'_>)) {
        out.reserve(self.text.len() + self.len() * each);
        for (place, copy) in self.iter().enumerate() {
            write(out, place, copy);
        }
    }

    fn relation(&self, place: usize, ends: Ends) -> &'static [u8] {
        let is_first = ends.first && place == 0;
        let is_last = ends.last && place + 1 == self.len();
        match (is_first, is_last) {
            (true, true) => b"first last memento",
            (true, false) => b"first memento",
            (false, true) => b"last memento",
            (false, false) => b"memento",
        }
    }
}

/// Addresses have no quotes and no control characters: of what JSON escapes, only the backslash is left.
fn push_json(out: &mut Vec<u8>, text: &str) {
    for (place, part) in text.split('\\').enumerate() {
        if place > 0 {
            out.extend_from_slice(b"\\\\");
        }
        out.extend_from_slice(part.as_bytes());
    }
}
