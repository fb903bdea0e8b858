//! Detects the columns of an index, and parses those that maps are built from.

use std::borrow::Cow;

use super::object::visit_members;
use super::shape::ObjectShape;
use super::{is_header, without_bom};

/// The layout of the lines of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// A key, a date, optionally a record type, and a JSON object.
    Cdxj,
    /// Columns.
    Cdx(Columns),
    /// One URL per line, or in a column of a TSV table.
    Urls {
        /// The column, from 0.
        column: Option<usize>,
    },
}

/// The positions of the columns in a CDX file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    delimiter: u8,
    key: Option<usize>,
    date: usize,
    url: Option<usize>,
    mime: Option<usize>,
    status: Option<usize>,
    size: Option<usize>,
    /// The number of fields per row: exact after a header, otherwise a range.
    fields: (usize, usize),
}

/// Without a header, files of 9, 10 and 11 columns begin with the same columns.
const DEFAULT_COLUMNS: Columns = Columns {
    delimiter: b' ',
    key: Some(0),
    date: 1,
    url: Some(2),
    mime: Some(3),
    status: Some(4),
    size: Some(8),
    fields: (9, 11),
};

/// The number of columns from which records have a size.
const DEFAULT_COLUMNS_WITH_SIZE: usize = 11;

/// The number of lines at the start of a file that are used for detection.
const SAMPLED_LINES: usize = 1000;

/// The columns of a row that maps are built from. Missing values are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row<'a> {
    /// The key column of the index.
    pub key: &'a [u8],
    /// Verbatim.
    pub date: &'a [u8],
    /// The URL.
    pub url: Cow<'a, [u8]>,
    /// The media type.
    pub mime: Cow<'a, [u8]>,
    /// The HTTP status.
    pub status: Cow<'a, [u8]>,
    /// The length of the record in its file, in bytes.
    pub size: Cow<'a, [u8]>,
}

/// The structure of earlier rows, used to parse the next ones faster. Does not affect the result.
#[derive(Debug, Clone, Default)]
pub struct RowShape(ObjectShape<Slot>);

/// The members of a row's object that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Url,
    Mime,
    Status,
    Size,
}

impl Slot {
    /// Tests the first byte before the rest, since this runs for every member of every row.
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
    /// Detects the layout from the first lines of a file: by a header, otherwise by the majority of rows. `None` if no
    /// line is a CDX or CDXJ row.
    #[must_use]
    pub fn detect(text: &[u8]) -> Option<Self> {
        let (mut cdxj, mut cdx) = (0, 0);
        for line in without_bom(text)
            .split(|&byte| byte == b'\n')
            .take(SAMPLED_LINES)
        {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some(columns) = Columns::of_header(line) {
                return Some(Self::Cdx(columns));
            }
            if line.trim_ascii().is_empty() || is_header(line) {
                continue;
            }
            if has_object(line) {
                cdxj += 1;
            } else if DEFAULT_COLUMNS.row(line).is_some() {
                cdx += 1;
            }
        }
        match (cdxj, cdx) {
            (0, 0) => None,
            _ if cdxj >= cdx => Some(Self::Cdxj),
            _ => Some(Self::Cdx(DEFAULT_COLUMNS)),
        }
    }

    /// Whether a line is a header or a comment. URL lists have only comments: anything else may be a URL.
    #[must_use]
    pub fn is_header(&self, line: &[u8]) -> bool {
        match self {
            Self::Urls { .. } => line.first() == Some(&b'#'),
            _ => is_header(line),
        }
    }

    /// Whether this is a CDX header that cannot be parsed.
    #[must_use]
    pub fn is_bad_header(&self, header: &[u8]) -> bool {
        !matches!(
            (self, header.first()),
            (Self::Urls { .. }, _) | (_, Some(b'!' | b'@' | b'#'))
        ) && header.get(1..4) == Some(b"CDX")
            && Columns::of_header(header).is_none()
    }

    /// Whether a line within a file changes the columns from here on.
    #[must_use]
    pub fn is_changed_by(&self, header: &[u8]) -> bool {
        match (Columns::of_header(header), self) {
            (None, _) => false,
            (Some(columns), Self::Cdx(known)) => !columns.is_read_as(known),
            (Some(columns), Self::Cdxj) => !columns.is_read_as(&DEFAULT_COLUMNS),
            (Some(_), Self::Urls { .. }) => true,
        }
    }

    /// Whether lines begin with their key, followed by one space and the date.
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

    /// Fast check that a row is a web page, from the text after its key and a space. May return false for a web page.
    /// Reads only the first member and the last byte of an object.
    #[must_use]
    pub fn is_certainly_web(&self, rest: &[u8]) -> bool {
        let begins_with_date = rest.len() > 32
            && rest[14] == b' '
            && are_digits(&rest[..8])
            && are_digits(&rest[6..14]);
        if !begins_with_date {
            return false;
        }
        let rest = &rest[15..];
        let url = match self {
            Self::Cdxj if rest.last() == Some(&b'}') => match rest.strip_prefix(b"{\"url\": \"") {
                Some(url) => url,
                None => rest.strip_prefix(b"{\"url\":\"").unwrap_or_default(),
            },
            // The key, the date, and one field more than there are spaces.
            Self::Cdx(columns)
                if columns.url == Some(2)
                    && columns.has_fields(3 + memchr::memchr_iter(b' ', rest).count()) =>
            {
                rest
            }
            _ => return false,
        };
        url.starts_with(b"http:") || url.starts_with(b"https:")
    }

    /// Parses a row; CDX and CDXJ lines may be mixed. `None` if the line is not a row: a wrong number of fields, an
    /// invalid date, or a truncated object. A line with an object is never a URL.
    #[must_use]
    pub fn row<'a>(&self, line: &'a [u8], shape: &mut RowShape) -> Option<Row<'a>> {
        match self {
            Self::Cdxj if has_object(line) => cdxj_row(line, shape),
            Self::Cdxj => DEFAULT_COLUMNS.row(line),
            Self::Cdx(columns) if columns.delimiter == b' ' && has_object(line) => {
                cdxj_row(line, shape)
            }
            Self::Cdx(columns) => columns.row(line),
            Self::Urls { .. } if is_index_row(line) => None,
            Self::Urls { column } => {
                let url = match column {
                    // A table without a given column.
                    None if memchr::memchr(b'\t', line.trim_ascii()).is_some() => return None,
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

/// Whether the third or fourth field of a line begins with a brace, as only in CDXJ.
fn has_object(line: &[u8]) -> bool {
    fields(line)
        .skip(2)
        .take(2)
        .any(|field| field.starts_with(b"{"))
}

/// Whether a line of a URL list is an index row.
fn is_index_row(line: &[u8]) -> bool {
    memchr::memmem::find(line, b" {\"").is_some() || DEFAULT_COLUMNS.row(line).is_some()
}

/// The fields between spaces and tabs.
fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ' || byte == b'\t')
        .filter(|field| !field.is_empty())
}

fn cdxj_row<'a>(line: &'a [u8], shape: &mut RowShape) -> Option<Row<'a>> {
    // Keys may contain braces: the object begins a field.
    let object_at = memchr::memmem::find(line, b" {")?;
    let mut head = fields(&line[..object_at]);
    let (key, date) = (head.next()?, head.next()?);
    // OpenWayback writes the record type in between.
    if !is_date(date) || head.nth(1).is_some() {
        return None;
    }
    let object = line[object_at + 1..].trim_ascii_end();
    let members = object.strip_prefix(b"{")?.strip_suffix(b"}")?;
    let bare = || Row {
        key,
        date,
        ..Row::default()
    };
    if members.trim_ascii().is_empty() {
        return Some(bare());
    }
    let mut row = bare();
    let has_shape = shape
        .0
        .visit(object, |slot, value| row.set(slot, Cow::Borrowed(value)));
    if has_shape {
        return Some(row);
    }
    row = bare();
    visit_members(object, |name, value| {
        if let Some(slot) = Slot::of(name) {
            row.set(slot, value);
        }
    })?;
    shape.0.learn(object, Slot::of);
    Some(row)
}

/// Whether eight bytes are digits, tested at once: this runs for every row.
fn are_digits(bytes: &[u8]) -> bool {
    let Ok(bytes) = bytes.try_into() else {
        return false;
    };
    let bytes = u64::from_ne_bytes(bytes);
    let high = 0xf0f0_f0f0_f0f0_f0f0;
    let digits = 0x3030_3030_3030_3030;
    bytes & high == digits && bytes.wrapping_add(0x0606_0606_0606_0606) & high == digits
}

/// Up to 14 digits or 17, or an ISO date. Does not check that the day exists.
fn is_date(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == text.len() {
        return matches!(digits, 1..=14 | 17);
    }
    digits == 4
        && text[4] == b'-'
        && text[4..]
            .iter()
            .all(|byte| byte.is_ascii_digit() || b"-:TtZz.,+".contains(byte))
}

fn is_media_type(field: &[u8]) -> bool {
    matches!(field, b"-" | b"unk") || field.contains(&b'/')
}

fn is_status(field: &[u8]) -> bool {
    field == b"-" || (field.len() == 3 && field.iter().all(u8::is_ascii_digit))
}

impl Columns {
    /// Parses a header such as ` CDX N b a m s k r M S V g`; its first byte is the delimiter.
    fn of_header(line: &[u8]) -> Option<Self> {
        let (&delimiter, rest) = line.split_first()?;
        let letters = rest.strip_prefix(b"CDX")?.strip_prefix(&[delimiter])?;
        let letters: Vec<&[u8]> = letters
            .trim_ascii_end()
            .split(|&byte| byte == delimiter)
            .collect();
        let column = |name: &[u8]| letters.iter().position(|letter| *letter == name);
        let (key, url) = (column(b"N").or_else(|| column(b"A")), column(b"a"));
        let is_header = letters
            .iter()
            .all(|letter| std::str::from_utf8(letter).is_ok_and(|it| it.chars().count() == 1));
        (is_header && (key.is_some() || url.is_some())).then_some(Self {
            delimiter,
            key,
            date: column(b"b")?,
            url,
            mime: column(b"m"),
            status: column(b"s"),
            size: column(b"S"),
            fields: (letters.len(), letters.len()),
        })
    }

    fn has_fields(&self, count: usize) -> bool {
        (self.fields.0..=self.fields.1).contains(&count)
    }

    /// Whether rows after this header are parsed correctly with the known columns.
    fn is_read_as(&self, known: &Self) -> bool {
        let same_places = Self {
            fields: self.fields,
            ..known.clone()
        };
        *self == same_places && known.has_fields(self.fields.0)
    }

    /// Joins the fields of a row whose URL contains spaces. `None` if the line may be something else, such as two rows
    /// in one line.
    fn join_url<'a>(&self, line: &'a [u8], mut fields: Vec<&'a [u8]>) -> Option<Vec<&'a [u8]>> {
        let is_usual = self.delimiter == b' '
            && (self.key, self.date, self.url) == (Some(0), 1, Some(2))
            && (self.mime, self.status) == (Some(3), Some(4));
        let has_type_at = |at: &usize| is_media_type(fields[*at]) && is_status(fields[*at + 1]);
        if !is_usual || has_type_at(&3) {
            return None;
        }
        // The media type is found where the known number of fields is left, at exactly one such position.
        let mut positions = (self.fields.0..=self.fields.1)
            .map(|width| 3 + fields.len() - width)
            .filter(has_type_at);
        let at = positions.next().filter(|_| positions.next().is_none())?;
        let has_other_row = |field: &&[u8]| memchr::memmem::find(field, b"://").is_some();
        if fields[3..at].iter().any(has_other_row) {
            return None;
        }
        let start = fields[..2].iter().map(|field| field.len() + 1).sum();
        let length = fields[2..at]
            .iter()
            .map(|field| field.len() + 1)
            .sum::<usize>()
            - 1;
        fields.splice(2..at, [&line[start..start + length]]);
        Some(fields)
    }

    fn row<'a>(&self, line: &'a [u8]) -> Option<Row<'a>> {
        let mut columns: Vec<&[u8]> = line.split(|&byte| byte == self.delimiter).collect();
        if columns.len() > self.fields.1 {
            columns = self.join_url(line, columns)?;
        }
        let value = |column: Option<usize>| match column.and_then(|at| columns.get(at)) {
            None | Some(&b"-") => &b""[..],
            Some(value) => value,
        };
        let date = value(Some(self.date));
        let (key, url) = (value(self.key), value(self.url));
        let is_row =
            self.has_fields(columns.len()) && is_date(date) && !(key.is_empty() && url.is_empty());
        let has_size = columns.len() >= DEFAULT_COLUMNS_WITH_SIZE || *self != DEFAULT_COLUMNS;
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
    fn layout_is_detected_from_most_rows() {
        let cdxj = Layout::detect(b"!meta {}\n\ncom,a)/ 2014 {\"url\": \"http://a.com/\"}\n");
        assert_eq!(cdxj, Some(Layout::Cdxj));
        let line = b"com,a)/ 2014 http://a.com/ text/html 200 X - - 7 8 a.warc.gz";
        assert_eq!(Layout::detect(line), Some(Layout::Cdx(DEFAULT_COLUMNS)));
        let header = b" CDX N b a m s k r M S V g\nrubbish";
        let eleven = Columns {
            fields: (11, 11),
            ..DEFAULT_COLUMNS
        };
        assert_eq!(Layout::detect(header), Some(Layout::Cdx(eleven)));
        for stray in [&b"rubbish"[..], b"http://a.com/", b"a 2014 c d e f g h i"] {
            let lines = [stray, b"com,a)/ 2014 {}", b"com,b)/ 2014 {}"].join(&b'\n');
            assert_eq!(Layout::detect(&lines), Some(Layout::Cdxj));
        }
        let other = Layout::detect(b"\tCDX\ta\tb\ts").expect("header");
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
            assert_eq!(Layout::detect(none), None);
        }
    }

    #[test]
    fn rows_have_key_date_url_mime_status_and_size() {
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
        for none in [
            &b"- 2014 - - - - - - -"[..],
            b"com,a)/ 2014 http://a.com/",
            b"com,a)/ 2014x http://a.com/ text/html 200 X - 7 a.warc.gz",
            b"com,a)/ 2014 http://a.com/ text/html 200 X - - 7 8 a.warc.gz 12",
        ] {
            assert_eq!(Layout::Cdx(DEFAULT_COLUMNS).row(none, &mut shape), None);
        }
        let list = Layout::Urls { column: None };
        assert_eq!(
            list.row(br#"com,a)/ 2014 {"url": "http://a.com/"}"#, &mut shape),
            None
        );
    }

    #[test]
    fn urls_with_spaces_are_joined() {
        let mut shape = RowShape::default();
        let eleven = Layout::detect(b" CDX N b a m s k r M S V g").expect("header");
        for layout in [Layout::Cdxj, Layout::Cdx(DEFAULT_COLUMNS), eleven] {
            let line = b"com,a)/x 2014 http://a.com/x - y  200 text/html 200 X - - 7 8 a.warc.gz";
            let row = layout.row(line, &mut shape).expect("row");
            assert_eq!(&*row.url, b"http://a.com/x - y  200");
            assert_eq!(
                (row.key, &*row.mime, &*row.status, &*row.size),
                (&b"com,a)/x"[..], &b"text/html"[..], &b"200"[..], &b"7"[..])
            );
            for other in [
                // Two rows in one line, the first complete or not; an extra field after the status; spaces in the media
                // type.
                &b"com,a)/ 2014 http://a.com/ text/html 200 X - - 7 8 acom,b)/ 2014 http://b.com/ text/html 200 X - - 7 8 b"[..],
                b"com,a)/ 2014 http://a.com/ tecom,b)/ 2014 http://b.com/ text/html 200 X - - 7 8 b",
                b"com,a)/ 2014 http://a.com/ text/html 200 X - - 7 8 a.warc.gz z",
                b"com,a)/ 2014 http://a.com/ text/html; charset=x 200 X - - 7 8 a.warc.gz",
            ] {
                assert_eq!(layout.row(other, &mut shape), None);
            }
        }
    }

    #[test]
    fn cdx_and_cdxj_rows_may_be_mixed() {
        let mut shape = RowShape::default();
        let cdx = b"com,a)/ 2014 http://a.com/ text/html 200 X - 7 a.warc.gz";
        for layout in [Layout::Cdxj, Layout::Cdx(DEFAULT_COLUMNS)] {
            for line in [&cdx[..], br#"com,a)/  2014 {"url": "http://a.com/"}"#] {
                let row = layout.row(line, &mut shape).expect("row");
                assert_eq!(
                    (row.key, &*row.url),
                    (&b"com,a)/"[..], &b"http://a.com/"[..])
                );
            }
            assert!(!layout.is_changed_by(b" CDX N b a m s k r M S V g"));
            assert!(layout.is_changed_by(b" CDX N b a m s k r V g"));
            assert!(layout.is_bad_header(b" CDX N b a m\rcom,a)/ 2014"));
        }
    }

    #[test]
    fn row_shape_does_not_change_parsed_rows() {
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
            let single = Layout::Cdxj.row(line.as_bytes(), &mut RowShape::default());
            assert_eq!(
                Layout::Cdxj.row(line.as_bytes(), &mut shape),
                single,
                "{object}"
            );
        }
    }

    #[test]
    fn fast_path_agrees_with_full_parser() {
        let web = br#"20140102030405 {"url": "https://a.com/", "mime": "x"}"#;
        assert!(Layout::Cdxj.is_certainly_web(web));
        for other in [
            &br#"20140102030405 {"url": "dns:a.com........................."}"#[..],
            br#"2014 {"url": "https://a.com/", "mime": "x"}"#,
            br"20140102030405 {}",
        ] {
            assert!(!Layout::Cdxj.is_certainly_web(other));
        }
        let cdx = b"20140102030405 http://a.com/ text/html 200 X - 7 a.warc.gz";
        assert!(Layout::Cdx(DEFAULT_COLUMNS).is_certainly_web(cdx));
        assert!(!Layout::Cdx(DEFAULT_COLUMNS).is_certainly_web(&cdx[..cdx.len() - 10]));
        assert!(!Layout::Cdxj.is_certainly_web(&web[..web.len() - 1]));
    }
}
