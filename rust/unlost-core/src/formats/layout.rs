//! What the columns of an index are, and the few of them that holdings are counted by.

use std::borrow::Cow;

use super::object::visit_members;
use super::shape::Shape;
use super::{is_header, without_mark};

/// How the lines of an index are made up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// A key, a date, perhaps a record type, and an object.
    Cdxj,
    /// Columns.
    Cdx(Columns),
    /// One address a line, or in a column of a table with tabs; nothing else.
    Urls {
        /// Which column, from 0.
        column: Option<usize>,
    },
}

/// Where a CDX file has what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    delimiter: u8,
    key: Option<usize>,
    date: usize,
    url: Option<usize>,
    mime: Option<usize>,
    status: Option<usize>,
    size: Option<usize>,
}

/// Without a header, files of 9, 10 and 11 columns begin alike.
const USUAL: Columns = Columns {
    delimiter: b' ',
    key: Some(0),
    date: 1,
    url: Some(2),
    mime: Some(3),
    status: Some(4),
    size: Some(8),
};

/// Only with so many columns they have the size of records.
const USUAL_WITH_SIZE: usize = 11;

/// The columns of a row that holdings are counted by. What a row does not have is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row<'a> {
    /// The index's own key.
    pub key: &'a [u8],
    /// As it stands.
    pub date: &'a [u8],
    /// The address.
    pub url: Cow<'a, [u8]>,
    /// The media type.
    pub mime: Cow<'a, [u8]>,
    /// The HTTP status.
    pub status: Cow<'a, [u8]>,
    /// How many bytes the record takes in its file.
    pub size: Cow<'a, [u8]>,
}

/// What is remembered of rows to read the next ones faster. It makes no difference to what is read.
#[derive(Debug, Clone, Default)]
pub struct RowShape(Shape<Slot>);

/// The members of a row's object that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Url,
    Mime,
    Status,
    Size,
}

impl Slot {
    /// By the first letter, then by all of them: this is done for every member of every row.
    fn of(name: &[u8]) -> Option<Self> {
        let slot = match name.first()? {
            b'u' => (matches!(name, b"url" | b"uri"), Self::Url),
            b'o' => (name == b"original_uri", Self::Url),
            b'm' => {
                let is_mime = matches!(name, b"mime" | b"mct" | b"mime_type" | b"mimetype");
                (is_mime, Self::Mime)
            }
            b's' => {
                let is_status = matches!(name, b"status" | b"status_code" | b"statuscode");
                (is_status, Self::Status)
            }
            b'h' => (name == b"hsc", Self::Status),
            b'l' => (name == b"length", Self::Size),
            _ => return None,
        };
        slot.0.then_some(slot.1)
    }
}

impl<'a> Row<'a> {
    fn set(&mut self, slot: Slot, value: Cow<'a, [u8]>) {
        match slot {
            Slot::Url => self.url = value,
            Slot::Mime => self.mime = value,
            Slot::Status => self.status = value,
            Slot::Size => self.size = value,
        }
    }
}

impl Layout {
    /// Tells the layout by a file's first lines. `None` if there is no line that is a row, or it is none of an index.
    #[must_use]
    pub fn told_by(text: &[u8]) -> Option<Self> {
        for line in without_mark(text).split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some(columns) = Columns::of_header(line) {
                return Some(Self::Cdx(columns));
            }
            if line.trim_ascii().is_empty() || is_header(line) {
                continue;
            }
            let columns: Vec<&[u8]> = line.splitn(4, |&byte| byte == b' ').collect();
            let is_cdxj = columns
                .iter()
                .skip(2)
                .any(|column| column.starts_with(b"{"));
            let has_date = columns.get(1).is_some_and(|date| is_date(date));
            return if is_cdxj {
                Some(Self::Cdxj)
            } else {
                has_date.then_some(Self::Cdx(USUAL))
            };
        }
        None
    }

    /// Whether a line is a header or a comment. Lists have but comments: anything else may be an address.
    #[must_use]
    pub fn is_header(&self, line: &[u8]) -> bool {
        match self {
            Self::Urls { .. } => line.first() == Some(&b'#'),
            _ => is_header(line),
        }
    }

    /// Whether a line in the middle of a file says that its columns are others from here on.
    #[must_use]
    pub fn is_changed_by(&self, header: &[u8]) -> bool {
        match (Columns::of_header(header), self) {
            (None, _) => false,
            (Some(columns), Self::Cdx(known)) => columns != *known,
            (Some(_), _) => true,
        }
    }

    /// Whether lines begin with their key, and the date follows after one space.
    #[must_use]
    pub fn begins_with_key(&self) -> bool {
        match self {
            Self::Cdxj => true,
            Self::Cdx(columns) => {
                columns.delimiter == b' ' && columns.key == Some(0) && columns.date == 1
            }
            Self::Urls { .. } => false,
        }
    }

    /// The fast way to tell that a row is a web page's, from what follows its key and a space. May say no to one that is.
    #[must_use]
    pub fn is_surely_web(&self, rest: &[u8]) -> bool {
        let begins_with_date = rest.len() > 32 && rest[0].is_ascii_digit() && rest[14] == b' ';
        if !begins_with_date {
            return false;
        }
        let rest = &rest[15..];
        let url = match self {
            Self::Cdxj => match rest.strip_prefix(b"{\"url\": \"") {
                Some(url) => url,
                None => rest.strip_prefix(b"{\"url\":\"").unwrap_or_default(),
            },
            Self::Cdx(columns) if columns.url == Some(2) => rest,
            _ => return false,
        };
        url.starts_with(b"http:") || url.starts_with(b"https:")
    }

    /// Reads a row. `None` if it is none: too few columns, or something else in place of the date.
    #[must_use]
    pub fn row<'a>(&self, line: &'a [u8], shape: &mut RowShape) -> Option<Row<'a>> {
        match self {
            Self::Cdxj => cdxj_row(line, shape),
            Self::Cdx(columns) => columns.row(line),
            Self::Urls { column } => {
                let url = match column {
                    None => line,
                    Some(column) => line.split(|&byte| byte == b'\t').nth(*column)?,
                };
                let url = url.trim_ascii();
                (!url.is_empty()).then(|| Row {
                    url: Cow::Borrowed(url),
                    ..Row::default()
                })
            }
        }
    }
}

fn cdxj_row<'a>(line: &'a [u8], shape: &mut RowShape) -> Option<Row<'a>> {
    let key_end = memchr::memchr(b' ', line)?;
    let rest = &line[key_end + 1..];
    let date_end = memchr::memchr(b' ', rest)?;
    let date = &rest[..date_end];
    // OpenWayback has the record's type in between.
    let object = &rest[memchr::memchr(b'{', rest)?..];
    if !is_date(date) {
        return None;
    }
    let bare = || Row {
        key: &line[..key_end],
        date,
        ..Row::default()
    };
    let mut row = bare();
    let has_shape = shape
        .0
        .visit(object, |slot, value| row.set(slot, Cow::Borrowed(value)));
    if has_shape {
        return Some(row);
    }
    row = bare();
    let is_read = visit_members(object, |name, value| {
        if let Some(slot) = Slot::of(name) {
            row.set(slot, value);
        }
    });
    if is_read.is_none() {
        return Some(bare());
    }
    shape.0.learn(object, Slot::of);
    Some(row)
}

/// Digits, or an ISO date.
fn is_date(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_digit)
}

impl Columns {
    /// Reads a header such as ` CDX N b a m s k r M S V g`; its first byte is the delimiter.
    fn of_header(line: &[u8]) -> Option<Self> {
        let (&delimiter, rest) = line.split_first()?;
        let letters = rest.strip_prefix(b"CDX")?.strip_prefix(&[delimiter])?;
        let letters: Vec<&[u8]> = letters
            .trim_ascii_end()
            .split(|&byte| byte == delimiter)
            .collect();
        let column = |wanted: &[u8]| letters.iter().position(|letter| *letter == wanted);
        Some(Self {
            delimiter,
            key: column(b"N").or_else(|| column(b"A")),
            date: column(b"b")?,
            url: column(b"a"),
            mime: column(b"m"),
            status: column(b"s"),
            size: column(b"S"),
        })
    }

    fn row<'a>(&self, line: &'a [u8]) -> Option<Row<'a>> {
        let columns: Vec<&[u8]> = line.split(|&byte| byte == self.delimiter).collect();
        let value = |column: Option<usize>| match column.and_then(|at| columns.get(at)) {
            None | Some(&b"-") => &b""[..],
            Some(value) => value,
        };
        let date = value(Some(self.date));
        let (key, url) = (value(self.key), value(self.url));
        let is_row = is_date(date) && !(key.is_empty() && url.is_empty());
        let has_size = columns.len() >= USUAL_WITH_SIZE || *self != USUAL;
        is_row.then(|| Row {
            key,
            date,
            url: Cow::Borrowed(url),
            mime: Cow::Borrowed(value(self.mime)),
            status: Cow::Borrowed(value(self.status)),
            size: Cow::Borrowed(value(self.size.filter(|_| has_size))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_told_by_the_first_row() {
        let cdxj = Layout::told_by(b"!meta {}\n\ncom,a)/ 2014 {\"url\": \"http://a.com/\"}\n");
        assert_eq!(cdxj, Some(Layout::Cdxj));
        let line = b"com,a)/ 2014 http://a.com/ text/html 200 X - - 7 8 a.warc.gz";
        assert_eq!(Layout::told_by(line), Some(Layout::Cdx(USUAL)));
        let header = b" CDX N b a m s k r M S V g\nrubbish";
        assert_eq!(Layout::told_by(header), Some(Layout::Cdx(USUAL)));
        let other = Layout::told_by(b"\tCDX\ta\tb\ts").expect("header");
        assert!(!other.begins_with_key());
        assert_eq!(
            other
                .row(b"http://a.com/\t2014\t200", &mut RowShape::default())
                .map(|row| row.status),
            Some(Cow::Borrowed(&b"200"[..]))
        );
        assert!(other.is_changed_by(b" CDX N b a"));
        assert!(!other.is_changed_by(b"\tCDX\ta\tb\ts"));
        for none in [&b""[..], b"\n\n", b"http://a.com/\n", b"!meta {}\n"] {
            assert_eq!(Layout::told_by(none), None);
        }
    }

    #[test]
    fn rows_have_what_they_are_counted_by() {
        let line = br#"com,a)/ 20140102030405 response {"uri": "dns:a.com", "hsc": 200, "mct": "text/html"}"#;
        let mut shape = RowShape::default();
        let row = Layout::Cdxj.row(line, &mut shape).expect("row");
        assert_eq!(
            (row.key, row.date),
            (&b"com,a)/"[..], &b"20140102030405"[..])
        );
        assert_eq!(
            (&*row.url, &*row.status, &*row.mime),
            (&b"dns:a.com"[..], &b"200"[..], &b"text/html"[..])
        );
        assert_eq!(Layout::Cdxj.row(b"com,a)/ x {}", &mut shape), None);
        assert_eq!(Layout::Cdxj.row(b"com,a)/ 2014", &mut shape), None);
        assert_eq!(Layout::Cdx(USUAL).row(b"- 2014 -", &mut shape), None);
    }

    #[test]
    fn what_is_remembered_of_rows_makes_no_difference() {
        let rows = [
            r#"{"url": "http://a/", "mime": "t", "status": "200", "length": "1"}"#,
            r#"{"url": "http://b/", "mime": "u", "status": "404", "length": "22"}"#,
            r#"{"url": "http://b/\u00fc", "mime": "u", "status": "404", "length": "22"}"#,
            r#"{"url": "http://b/", "mime": "u", "status": "404", "length": "22", "url": "dns:b"}"#,
            r#"{"url": "http://b/", "mime": "u", "status": 301, "length": 22}"#,
            r#"{"url": "http://b/", "mime": "u"}"#,
            r#"{"url": "http://c/", "mime": "u"}"#,
            r#"{"url": "http://c/", "mime": "u"#,
            r#"{"url": "http://c/", "mime": "u"} and more"#,
            r"{}",
        ];
        let mut shape = RowShape::default();
        for object in rows.iter().chain(rows.iter().rev()) {
            let line = format!("com,a)/ 20140102030405 {object}");
            let alone = Layout::Cdxj.row(line.as_bytes(), &mut RowShape::default());
            assert_eq!(
                Layout::Cdxj.row(line.as_bytes(), &mut shape),
                alone,
                "{object}"
            );
        }
    }

    #[test]
    fn the_fast_way_agrees() {
        let web = br#"20140102030405 {"url": "https://a.com/", "mime": "x"}"#;
        assert!(Layout::Cdxj.is_surely_web(web));
        for other in [
            &br#"20140102030405 {"url": "dns:a.com........................."}"#[..],
            br#"2014 {"url": "https://a.com/", "mime": "x"}"#,
            br"20140102030405 {}",
        ] {
            assert!(!Layout::Cdxj.is_surely_web(other));
        }
        let cdx = b"20140102030405 http://a.com/ text/html 200";
        assert!(Layout::Cdx(USUAL).is_surely_web(cdx));
    }
}
