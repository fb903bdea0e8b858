//! The codings that headers name, in the order in which they are removed.

pub const CHUNKED: &str = "chunked";

/// Supported codings.
pub const SUPPORTED: [&str; 4] = ["gzip", "deflate", "br", "zstd"];

/// Values of the header that are not codings.
const NOT_CODINGS: [&str; 7] = ["", "identity", "none", "binary", "7bit", "8bit", "utf-8"];

/// Real codings, from the IANA registry and from observed servers. A name on neither list is ignored.
const UNSUPPORTED: [&str; 11] = [
    "compress",
    "x-compress",
    "dcb",
    "dcz",
    "exi",
    "aes128gcm",
    "pack200-gzip",
    "sdch",
    "bzip2",
    "lzma",
    "xz",
];

/// The codings that header fields name, in lower case, transfer codings first.
#[must_use]
pub fn codings_of<'a, F>(fields: impl Fn() -> F) -> Vec<String>
where
    F: DoubleEndedIterator<Item = (&'a str, &'a [u8])>,
{
    let mut codings = Vec::new();
    for field in ["transfer-encoding", "content-encoding"] {
        for (name, value) in fields().rev() {
            if name.eq_ignore_ascii_case(field) {
                add_codings(value, &mut codings);
            }
        }
    }
    codings
}

fn add_codings(value: &[u8], codings: &mut Vec<String>) {
    for part in value.rsplit(|&byte| byte == b',') {
        let end = memchr::memchr(b';', part).unwrap_or(part.len());
        // As Latin-1, in which every byte is a character.
        let text: String = part[..end].iter().map(|&byte| char::from(byte)).collect();
        let name = text.trim_matches(is_space).to_lowercase();
        if !NOT_CODINGS.contains(&name.as_str()) {
            codings.push(if name == "x-gzip" {
                "gzip".to_owned()
            } else {
                name
            });
        }
    }
}

/// White space as in Python: includes the separators of files and records.
fn is_space(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\x1c'..='\x1f')
}

/// Whether this is a known coding that is not supported. A name with further words is not that of its first word.
pub fn is_unsupported(coding: &str) -> bool {
    let first = coding.split(is_space).find(|word| !word.is_empty());
    UNSUPPORTED.contains(&coding) || first.is_some_and(|word| SUPPORTED.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_codings_are_removed_first_in_reverse_order() {
        let fields: [(&str, &[u8]); 2] = [
            ("Content-Encoding", b"deflate, X-GZIP;q=1, identity"),
            ("transfer-encoding", b"Chunked"),
        ];
        let codings = codings_of(|| fields.iter().copied());
        assert_eq!(codings, ["chunked", "gzip", "deflate"]);
    }
}
