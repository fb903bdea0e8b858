//! The line that begins a record of an ARC file, version 1 or 2.

use super::fields;

/// What such a line says.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub uri: String,
    pub date: String,
    pub media_type: String,
    pub len: u64,
}

/// The longest line that is read as one, with room for a long address.
pub const MAX_LINE: usize = 1 << 14;

/// Read a line, without its end. Version 1 has `address IP date type length`, version 2
/// `address IP date type status checksum location offset file length`; addresses and types may have spaces in them.
pub fn read(line: &[u8]) -> Option<Line> {
    let words: Vec<&[u8]> = line.trim_ascii_end().split(|&byte| byte == b' ').collect();
    let is_date = |word: &&[u8]| word.len() == 14 && word.iter().all(u8::is_ascii_digit);
    let date = words.iter().rposition(is_date)?;
    let len = fields::number(words.last()?)?;
    if date < 2 || date + 2 >= words.len() || !has_scheme(line) || words[date - 1].is_empty() {
        return None;
    }
    let uri = words[..date - 1].join(&b' ');
    Some(Line {
        uri: fields::address(&uri),
        date: String::from_utf8_lossy(words[date]).into_owned(),
        media_type: String::from_utf8_lossy(words[date + 1]).into_owned(),
        len,
    })
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
    memchr::memchr(b'\n', text).is_some_and(|end| end <= MAX_LINE && read(&text[..end]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let one = read(b"http://a.com/b c 1.2.3.4 20010203040506 text/html 12\r").expect("a line");
        assert_eq!((one.uri.as_str(), one.len), ("http://a.com/b%20c", 12));
        let two = b"http://a.com/ 1.2.3.4 20010203040506 text/html 200 - - 0 a.arc 12";
        let two = read(two).expect("a line");
        assert_eq!((two.media_type.as_str(), two.len), ("text/html", 12));
    }

    #[test]
    fn header_lines_of_http_are_none() {
        assert_eq!(read(b"Date: Wed, 04 Oct 2017 18:17:03 GMT"), None);
        assert_eq!(read(b"HTTP/1.1 200 OK"), None);
    }
}
