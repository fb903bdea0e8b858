//! Header fields of WARC records and HTTP messages: `name: value` lines, parsed leniently.

use memchr::memchr;

/// The fields of a header, and the number of malformed lines.
pub struct Fields {
    fields: Vec<(String, Vec<u8>)>,
    /// Lines without a colon.
    pub bad_lines: usize,
}

impl Fields {
    /// Parses a header without its first line. Lines end in LF or CRLF; a line that begins with white space continues
    /// the previous one.
    pub fn read(lines: &[u8]) -> Self {
        let mut fields: Vec<(String, Vec<u8>)> = Vec::new();
        let mut bad_lines = 0;
        for line in lines.split(|&byte| byte == b'\n') {
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            if let (b' ' | b'\t', Some((_, value))) = (line[0], fields.last_mut()) {
                value.push(b' ');
                value.extend_from_slice(text);
            } else if let Some(colon) = memchr(b':', text) {
                let name = String::from_utf8_lossy(text[..colon].trim_ascii_end());
                fields.push((
                    name.into_owned(),
                    text[colon + 1..].trim_ascii_start().to_vec(),
                ));
            } else {
                bad_lines += 1;
            }
        }
        Self { fields, bad_lines }
    }

    /// The first value of that name, case-insensitive.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let mut named = self
            .fields
            .iter()
            .filter(|(each, _)| each.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_slice())
    }

    /// The first value of that name as text; invalid UTF-8 is replaced.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)
            .map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// The first value of that name as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(number)
    }

    /// Borrows all fields in order.
    pub fn pairs(&self) -> impl DoubleEndedIterator<Item = (&str, &[u8])> {
        let fields = self.fields.iter();
        fields.map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// All fields in order.
    pub fn into_pairs(self) -> Vec<(String, Vec<u8>)> {
        self.fields
    }
}

/// The end of a header: after its first empty line. Bytes before `from` are not searched again.
pub fn end_of_head(head: &[u8], from: usize) -> Option<usize> {
    // The line end before the empty line may have been searched already.
    let mut at = from.saturating_sub(2);
    while let Some(line_end) = memchr(b'\n', &head[at..]) {
        at += line_end + 1;
        match head[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// A URL without its brackets, as safe ASCII: bytes that cannot occur in a line of an index (white space, control
/// characters, invalid UTF-8) are escaped, which does not change its key.
pub fn escaped_uri(value: &[u8]) -> String {
    let value = value.trim_ascii();
    let value = value
        .strip_prefix(b"<")
        .and_then(|inner| inner.strip_suffix(b">"))
        .unwrap_or(value);
    let mut text = String::with_capacity(value.len());
    for chunk in value.utf8_chunks() {
        for char in chunk.valid().chars() {
            if char == ' ' || char.is_ascii_control() {
                escape(char as u8, &mut text);
            } else {
                text.push(char);
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|&byte| escape(byte, &mut text));
    }
    text
}

fn escape(byte: u8, text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.push('%');
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// A media type in lower case, without parameters.
pub fn media_type(value: &[u8]) -> Option<String> {
    let is_end = |byte: &u8| matches!(byte, b';' | b',') || byte.is_ascii_whitespace();
    let value = value.trim_ascii();
    let end = value.iter().position(is_end).unwrap_or(value.len());
    let name = String::from_utf8_lossy(&value[..end]).to_ascii_lowercase();
    (!name.is_empty()).then_some(name)
}

/// Parses a number that consists of digits only.
pub fn number(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    // Rust would also accept a sign.
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}
