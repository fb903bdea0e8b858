//! Map lines that are exchanged between machines: split by bounds, parsed, and added up.

use std::io::Cursor;

use super::totals::Totals;
use super::{Entry, HoldingsError, LineStats, MapReader};

/// Splits lines by part: part 0 is before the first bound, part 1 from it on, and so on. With `pages`, keys are
/// compared without their queries, so that all URLs of a page go into one part. Parts without lines are dropped; the
/// order of lines is unchanged.
///
/// A line is its key, a space, and more. Bounds must be sorted.
#[must_use]
pub fn split_lines(text: &[u8], bounds: &[Vec<u8>], pages: bool) -> Vec<(usize, Vec<u8>)> {
    let mut parts: Vec<Vec<u8>> = vec![Vec::new(); bounds.len() + 1];
    let mut part = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let key = key_of(line, pages);
        // Neighbours are mostly in the same part.
        let is_after = part == 0 || bounds[part - 1].as_slice() <= key;
        let is_before = bounds.get(part).is_none_or(|bound| key < bound.as_slice());
        if !(is_after && is_before) {
            part = bounds.partition_point(|bound| bound.as_slice() <= key);
        }
        parts[part].extend_from_slice(line);
    }
    let parts = parts.into_iter().enumerate();
    parts.filter(|(_, lines)| !lines.is_empty()).collect()
}

fn key_of(line: &[u8], pages: bool) -> &[u8] {
    let end = if pages {
        memchr::memchr3(b'?', b' ', b'\n', line)
    } else {
        memchr::memchr2(b' ', b'\n', line)
    };
    &line[..end.unwrap_or(line.len())]
}

/// The content of a piece of a map.
#[derive(Debug, Default)]
pub struct MapLines {
    /// Its lines in canonical form, without totals.
    pub lines: Vec<u8>,
    /// Its totals: the `*` lines.
    pub totals: Vec<u8>,
    /// The sums of its other lines, as `*` lines.
    pub sums: Vec<u8>,
    /// The line statistics.
    pub line_stats: LineStats,
}

/// Parses a piece of a map, which must be sorted. `fields` is the number of key fields per line.
pub fn read_map_lines(
    text: Vec<u8>,
    fields: usize,
    line_limit: usize,
) -> Result<MapLines, HoldingsError> {
    let mut reader = MapReader::new(Cursor::new(text), fields, line_limit)?;
    let mut map_lines = MapLines::default();
    let mut totals = Totals::default();
    while let Some(entry) = reader.next_entry()? {
        if entry.surt_and_extra().0 == b"*" {
            entry.write(&mut map_lines.totals);
        } else {
            totals.add_entry(&entry)?;
            entry.write(&mut map_lines.lines);
        }
    }
    map_lines.sums = totals.text();
    map_lines.line_stats = std::mem::take(&mut reader.line_stats);
    Ok(map_lines)
}

/// Adds up `*` lines of parts that have no page in common.
pub fn add_totals(text: &[u8], fields: usize) -> Result<Vec<u8>, HoldingsError> {
    let mut totals = Totals::default();
    for line in text.split(|&byte| byte == b'\n') {
        if let Some((entry, _)) = Entry::read(line, fields) {
            totals.add_entry(&entry)?;
        }
    }
    Ok(totals.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(texts: &[&str]) -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    #[test]
    fn lines_go_to_the_part_that_contains_their_key() {
        let text = b"com,a)/ 1\ncom,b)/ 2\ncom,b,c)/ 3\ncom,d)/ 4\n";
        let parts = split_lines(text, &bounds(&["com,b", "com,c", "com,x"]), false);
        assert_eq!(
            parts,
            [
                (0, b"com,a)/ 1\n".to_vec()),
                (1, b"com,b)/ 2\ncom,b,c)/ 3\n".to_vec()),
                (2, b"com,d)/ 4\n".to_vec()),
            ]
        );
        assert_eq!(split_lines(text, &[], false), [(0, text.to_vec())]);
    }

    #[test]
    fn queries_of_a_page_stay_in_one_part() {
        let text = b"com,a)/a 1\ncom,a)/a-b 2\ncom,a)/a?q 3\n";
        let parts = split_lines(text, &bounds(&["com,a)/a-b"]), true);
        assert_eq!(
            parts,
            [
                (0, b"com,a)/a 1\ncom,a)/a?q 3\n".to_vec()),
                (1, b"com,a)/a-b 2\n".to_vec()),
            ]
        );
    }

    #[test]
    fn totals_are_separated_and_summed() {
        let text = b"!head\n* 9/3\ncom,a)/ 4/1\ncom,b)/ 5/2\n".to_vec();
        let map_lines = read_map_lines(text, 1, 100).expect("sorted");
        assert_eq!(map_lines.totals, b"* 9/3\n");
        assert_eq!(map_lines.sums, b"* 9/3\n");
        assert_eq!(map_lines.lines, b"com,a)/ 4/1\ncom,b)/ 5/2\n");
        let sum = add_totals(b"* 9/3\n* 1/1\n", 1).expect("no overflow");
        assert_eq!(sum, b"* 10/4\n");
        let years = add_totals(b"* 2013 1\n* 2014 2\n* 2013 4\n", 2).expect("no overflow");
        assert_eq!(years, b"* 2013 5\n* 2014 2\n");
        assert!(read_map_lines(b"com,b)/ 1\ncom,a)/ 1\n".to_vec(), 1, 100).is_err());
    }
}
