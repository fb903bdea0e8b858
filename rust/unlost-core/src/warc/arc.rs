//! The line that begins a record of an ARC file, version 1 or 2.

use std::net::IpAddr;

use super::fields;

/// The parsed line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub uri: String,
    pub date: String,
    pub media_type: String,
    pub len: u64,
}

/// The maximum length of such a line. Our limit, with room for a long URL.
pub const MAX_LINE: usize = 1 << 14;

/// Parses a line without its end. Version 1 is `URL IP date type length`, version 2 `URL IP date type status checksum
/// location offset file length`; URLs and types may contain spaces. Dates have 14 digits; old crawlers truncated them,
/// and others added milliseconds.
pub fn parse_line(line: &[u8]) -> Option<Line> {
    let words: Vec<&[u8]> = line.trim_ascii_end().split(|&byte| byte == b' ').collect();
    let is_date = |word: &&[u8]| word.len() == 14 && word.iter().all(u8::is_ascii_digit);
    let date = match words.iter().rposition(is_date) {
        Some(date) => date,
        // Only its position identifies a date of another length: sizes and offsets are digits, too.
        None => {
            words.windows(2).rposition(|pair| {
                (4..=17).contains(&pair[1].len())
                    && pair[1].iter().all(u8::is_ascii_digit)
                    && is_ip(pair[0])
            })? + 1
        }
    };
    let len = fields::number(words.last()?)?;
    if date < 2 || date + 2 >= words.len() || !has_scheme(line) || words[date - 1].is_empty() {
        return None;
    }
    let uri = words[..date - 1].join(&b' ');
    Some(Line {
        uri: fields::escaped_uri(&uri),
        date: String::from_utf8_lossy(words[date]).into_owned(),
        media_type: String::from_utf8_lossy(words[date + 1]).into_owned(),
        len,
    })
}

fn is_ip(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| word.parse::<IpAddr>().is_ok())
}

fn has_scheme(line: &[u8]) -> bool {
    let end = line.iter().position(|&byte| byte == b':').unwrap_or(0);
    end > 0
        && line[0].is_ascii_alphabetic()
        && line[..end]
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Whether a text begins with such a line.
pub fn begins_record(text: &[u8]) -> bool {
    memchr::memchr(b'\n', text)
        .is_some_and(|end| end <= MAX_LINE && parse_line(&text[..end]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions_are_parsed() {
        let one =
            parse_line(b"http://a.com/b c 1.2.3.4 20010203040506 text/html 12\r").expect("a line");
        assert_eq!((one.uri.as_str(), one.len), ("http://a.com/b%20c", 12));
        let two = b"http://a.com/ 1.2.3.4 20010203040506 text/html 200 - - 0 a.arc 12";
        let two = parse_line(two).expect("a line");
        assert_eq!((two.media_type.as_str(), two.len), ("text/html", 12));
    }

    #[test]
    fn date_of_unusual_length_follows_an_ip_address() {
        for date in ["1996", "199610", "199610011234", "19961001123456789"] {
            for fields in ["", "200 - - 123456 a.arc "] {
                let line = format!("http://a.com/ 1.2.3.4 {date} text/html {fields}1234");
                let line = parse_line(line.as_bytes()).expect("a line");
                assert_eq!((line.date.as_str(), line.len), (date, 1234));
            }
        }
        assert_eq!(parse_line(b"http://a.com/ 12345 1996 text/html 1234"), None);
        assert_eq!(
            parse_line(b"http://a.com/ 1.2.3.4 199 text/html 1234"),
            None
        );
    }

    #[test]
    fn http_header_line_is_not_an_arc_line() {
        assert_eq!(parse_line(b"Date: Wed, 04 Oct 2017 18:17:03 GMT"), None);
        assert_eq!(parse_line(b"HTTP/1.1 200 OK"), None);
    }
}
