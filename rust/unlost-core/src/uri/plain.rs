//! Fast path for keys that are already normalized, as nearly all of an index are.
//!
//! All of these may return `None` for a normalized key; otherwise the result is what `normal_key` would write.

use super::path_query;
use super::surt_host::is_plain_host;
use super::web_url::MAX_BYTES;

/// For a key without a query: the normalized key, if the given one is that except for a final slash. May return `None`
/// for a normalized one.
#[must_use]
pub fn plain_page(key: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b')', key)?;
    let (host, path) = (&key[..end], &key[end + 1..]);
    let is_plain = key.len() <= MAX_BYTES && is_plain_host(host) && path_query::is_plain_path(path);
    is_plain.then(|| without_last_slash(key))
}

/// The same for a key whose first `known` bytes, including more than the host, are those of another plain one.
#[must_use]
pub fn plain_page_from(key: &[u8], known: usize) -> Option<&[u8]> {
    let is_plain =
        key.len() <= MAX_BYTES && path_query::is_plain_rest(key[known - 1], &key[known..]);
    is_plain.then(|| without_last_slash(key))
}

/// The same for a key with a query, which is then normalized too. Its first `known` bytes, including the host, are
/// those of another plain page; 0 if nothing is known.
#[must_use]
pub fn plain_uri(key: &[u8], known: usize) -> Option<&[u8]> {
    let page = &key[..memchr::memchr(b'?', key).unwrap_or(key.len())];
    let known = known.min(page.len());
    let plain = match known {
        0 => plain_page(page),
        _ => plain_page_from(page, known),
    }?;
    let Some(query) = key[page.len()..].strip_prefix(b"?") else {
        return Some(plain);
    };
    let is_plain =
        plain.len() == page.len() && key.len() <= MAX_BYTES && path_query::is_plain_query(query);
    is_plain.then_some(key)
}

/// The root retains its slash, which is after the first `)`; paths may contain others.
fn without_last_slash(key: &[u8]) -> &[u8] {
    if key.ends_with(b")/") && memchr::memchr(b')', key) == Some(key.len() - 2) {
        key
    } else {
        key.strip_suffix(b"/").unwrap_or(key)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RuleSet, normal_key};
    use super::*;

    /// Whether a key is taken for plain; then the result must be its normalized form under all rules.
    fn is_plain_and_normal(key: &[u8], known: usize) -> bool {
        let Some(found) = plain_uri(key, known) else {
            return false;
        };
        for rules in [RuleSet::Wayback, RuleSet::Papers] {
            let mut expected = Vec::new();
            normal_key(key, rules, &mut expected).expect("a key");
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(key));
        }
        true
    }

    #[test]
    fn plain_pages_are_normalized_keys() {
        for (key, expected) in [
            ("com,example)/", Some("com,example)/")),
            ("com,example)/a/b.html", Some("com,example)/a/b.html")),
            ("com,example)/a/", Some("com,example)/a")),
            ("com,example)/a)/", Some("com,example)/a)")),
            ("com,example)/)/", Some("com,example)/)")),
            ("com,example)", None),
            ("com,example)//", None),
            ("com,example)/a/./b", None),
            ("com,example)/A", None),
            ("com,example)/a%20b", None),
            ("com,example)/a?b", None),
            ("com,example,www)/", None),
            ("com,example,)/", None),
        ] {
            let found = plain_page(key.as_bytes());
            assert_eq!(found, expected.map(str::as_bytes), "{key}");
            if expected.is_some() {
                assert!(is_plain_and_normal(key.as_bytes(), 0), "{key}");
            }
        }
    }

    /// All texts of up to five of these bytes.
    fn short_texts(alphabet: &[u8]) -> Vec<Vec<u8>> {
        let mut texts = vec![Vec::new()];
        for length in 0..5 {
            let longer: Vec<Vec<u8>> = texts
                .iter()
                .filter(|text| text.len() == length)
                .flat_map(|text| {
                    alphabet
                        .iter()
                        .map(|&byte| [text.as_slice(), &[byte]].concat())
                })
                .collect();
            texts.extend(longer);
        }
        texts
    }

    #[test]
    fn short_plain_pages_are_normalized_keys() {
        let mut plain = 0;
        for path in short_texts(b"ab/.)(A%") {
            let key = [b"com,a)/", path.as_slice()].concat();
            for known in [0, 7] {
                plain += usize::from(is_plain_and_normal(&key, known));
            }
        }
        assert!(plain > 1000, "{plain}");
    }

    #[test]
    fn plain_queries_are_normalized_keys() {
        // All short queries of special bytes, after some pages.
        let mut queries = short_texts(b"ab=&?/A%.");
        let session = "sid=0123456789abcdef0123456789abcdef";
        queries.extend(["cfid=1&cftoken=2", session, "b=1&id=0123456789abc"].map(Vec::from));
        let mut plain = 0;
        // Nothing is known of the last page: it is not plain.
        for (page, knowns) in [
            ("com,a)/", &[0, 7][..]),
            ("com,a)/p", &[0, 7]),
            ("com,a)/p/", &[0, 7]),
            ("com,a)/p)/", &[0, 7]),
            ("com,a)/P", &[0, 7]),
            ("com,www,a)/", &[0]),
        ] {
            for query in &queries {
                let key = [page.as_bytes(), b"?", query].concat();
                for known in knowns {
                    plain += usize::from(is_plain_and_normal(&key, *known));
                }
            }
        }
        assert!(plain > 1000, "{plain}");
    }

    #[test]
    fn overlong_keys_are_left_to_the_normalizer() {
        for page in ["com,a)/p", "com,a)/p?x="] {
            let long = format!("{page}{}", "y".repeat(MAX_BYTES));
            for known in [0, 7] {
                assert_eq!(plain_uri(long.as_bytes(), known), None, "{page}");
            }
        }
    }
}
