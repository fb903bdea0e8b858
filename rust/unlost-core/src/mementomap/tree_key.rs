//! Keys in tree order, in which a subtree is contiguous.
//!
//! Files are sorted by bytes: `/a`, `/a-b`, `/a.html`, `/a/b`, where `/a` is not followed by its subtree. With `/` as
//! the lowest byte it is. Only paths need that: for hosts, byte order is tree order, because no byte of a normalized
//! label sorts between `)` and `,`, and no label is empty.

use std::borrow::Cow;

/// Replaces the space that ends a key before further key fields: sorts before everything.
const END: u8 = 1;

/// Replaces `/` in paths: sorts before everything but the end.
pub(super) const SLASH: u8 = 2;

/// Whether byte order is tree order for a host, as for all normalized ones. For others a subtree may not be contiguous:
/// `com,a)/`, `com,a+b)/`, `com,a,b)/`; `com,)/`, `com,*`, `com,,a)/`.
pub(super) fn is_tree_ordered(host: &[u8]) -> bool {
    // Hosts are short: one pass is faster than any search.
    let mut before = b' ';
    for &byte in host {
        if matches!(byte, b'*' | b'+') || byte == b',' && before == b',' {
            return false;
        }
        before = byte;
    }
    before != b','
}

/// The replacement of a byte of a key. Bytes of hosts are unchanged.
pub(super) fn tree_byte(byte: u8) -> u8 {
    match byte {
        b' ' => END,
        b'/' => SLASH,
        other => other,
    }
}

/// Converts one or more keys to tree order.
pub(super) fn write_tree_key(key: &mut [u8]) {
    for byte in key {
        *byte = tree_byte(*byte);
    }
}

/// Converts a key in tree order, or a prefix of one, back to the form in files.
pub(super) fn restore_key(key: &mut [u8]) {
    for byte in key {
        *byte = match *byte {
            END => b' ',
            SLASH => b'/',
            other => other,
        };
    }
}

/// The main field of a key in tree order, and the further key fields in the form of files.
pub(super) fn split_tree_key(key: &[u8]) -> (&[u8], Cow<'_, [u8]>) {
    let Some(end) = memchr::memchr(END, key) else {
        return (key, Cow::Borrowed(b""));
    };
    let extra = &key[end + 1..];
    // A year needs no conversion; media types contain a slash, and several fields are separated by spaces.
    if memchr::memchr2(END, SLASH, extra).is_none() {
        return (&key[..end], Cow::Borrowed(extra));
    }
    let mut restored = extra.to_vec();
    restore_key(&mut restored);
    (&key[..end], Cow::Owned(restored))
}

/// The length of the common prefix of two keys.
pub(super) fn common_len(a: &[u8], b: &[u8]) -> usize {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let mut common = 0;
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let different = word(a) ^ word(b);
        if different != 0 {
            return common + different.trailing_zeros() as usize / 8;
        }
        common += 8;
    }
    let rest = a[common..].iter().zip(&b[common..]);
    common + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtree_is_contiguous() {
        let sorted = [
            "com,a)/",
            "com,a)/a 2014",
            "com,a)/a/*",
            "com,a)/a/b",
            "com,a)/a/b/c",
            "com,a)/a/b-c",
            "com,a)/a-b",
            "com,a)/a.html",
        ];
        let mut keys: Vec<Vec<u8>> = sorted
            .iter()
            .rev()
            .map(|key| {
                let mut key = key.as_bytes().to_vec();
                write_tree_key(&mut key);
                key
            })
            .collect();
        keys.sort();
        assert_eq!(split_tree_key(&keys[1]).1, &b"2014"[..]);
        for (key, expected) in keys.iter_mut().zip(sorted) {
            restore_key(key);
            assert_eq!(key, expected.as_bytes());
        }
    }

    #[test]
    fn extra_fields_are_restored_as_in_files() {
        let mut key = b"com,a)/a/b 2014 text/html pt".to_vec();
        write_tree_key(&mut key);
        let (surt, extra) = split_tree_key(&key);
        assert_eq!(surt, b"com,a)\x02a\x02b");
        assert_eq!(extra, &b"2014 text/html pt"[..]);
    }

    #[test]
    fn irregular_hosts_are_not_tree_ordered() {
        for host in ["com,a", "com,a-b:80", "com,%2b", "1.2.3.4", "[::1]", ""] {
            assert!(is_tree_ordered(host.as_bytes()), "{host}");
        }
        for host in ["com,a+b", "com,*", "com,", "com,,a"] {
            assert!(!is_tree_ordered(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn common_prefix_length_is_counted() {
        let long = b"com,example)/abcdefghijklmnop";
        for length in 0..long.len() {
            let mut other = long.to_vec();
            other[length] = b'!';
            assert_eq!(common_len(long, &other), length);
            assert_eq!(common_len(long, &long[..length]), length);
        }
        assert_eq!(common_len(long, long), long.len());
    }
}
