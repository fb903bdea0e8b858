//! Serializes mementos: a line with the format, its version and the archives, then one line per memento.

use std::borrow::Cow;
use std::fmt;

use super::url::needs_no_escape;
use super::{MementoListBuilder, Mementos, TextSink};
use crate::memento::httpdate;

const MAGIC: &str = "mementos 1";

/// Bytes that are not serialized mementos.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackError {
    /// The line, from 1.
    pub line: usize,
    expected: &'static str,
}

impl fmt::Display for UnpackError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "expected {} in line {} of packed mementos",
            self.expected, self.line
        )
    }
}

impl Mementos {
    /// Serializes the mementos; `unpack` reads them.
    pub fn pack(&self, out: &mut impl TextSink) {
        out.add(MAGIC.as_bytes());
        for name in &self.archives {
            out.add(b" ");
            out.add(name.as_bytes());
        }
        out.add(b"\n");
        let ids: Vec<String> = (0..self.archives.len())
            .map(|id| format!(" {id} "))
            .collect();
        for row in &self.rows {
            out.add(&super::digits(row.date));
            out.add(ids[row.archive as usize].as_bytes());
            self.url(row)
                .write(out, |out, part| out.add(part.as_bytes()));
            out.add(b"\n");
        }
    }
}

/// Parses the output of `pack`. Any input is safe.
pub fn unpack(bytes: &[u8]) -> Result<Mementos, UnpackError> {
    let fault = |line, expected| UnpackError { line, expected };
    let whole = bytes
        .strip_suffix(b"\n")
        .ok_or(fault(1, "a newline at the end"))?;
    let mut lines = whole.split(|&byte| byte == b'\n');
    let head = lines.next().unwrap_or_default();
    let names = head
        .strip_prefix(MAGIC.as_bytes())
        .filter(|names| names.is_empty() || names[0] == b' ')
        .ok_or(fault(1, "`mementos 1`"))?;
    let mut builder = MementoListBuilder::default();
    let mut ids = Vec::new();
    for name in names.split(|&byte| byte == b' ').skip(1) {
        match std::str::from_utf8(name) {
            Ok(name) if needs_no_escape(name.as_bytes()) => ids.push(builder.archive(name)),
            _ => return Err(fault(1, "ids of archives")),
        }
    }
    for (line, number) in lines.zip(2..) {
        let mut parts = line.splitn(3, |&byte| byte == b' ');
        let (date, archive, url) = (parts.next(), parts.next(), parts.next());
        let date = date
            .and_then(|date| httpdate::from_digits(date).filter(|digits| digits == date))
            .ok_or(fault(number, "14 digits that are a date"))?;
        let archive = archive
            .and_then(|text| std::str::from_utf8(text).ok()?.parse::<usize>().ok())
            .and_then(|index| ids.get(index))
            .ok_or(fault(number, "the place of an archive"))?;
        let url = url
            .filter(|url| needs_no_escape(url))
            .ok_or(fault(number, "an address"))?;
        builder
            .add(&date, *archive, Cow::Borrowed(url))
            .map_err(|_| fault(number, "less text"))?;
    }
    Ok(builder.finish())
}
