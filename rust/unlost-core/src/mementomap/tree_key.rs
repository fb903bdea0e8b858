//! Keys in the order of the tree, in which a subtree stands together.
//!
//! Files are sorted by bytes, and there `/a`, `/a-b`, `/a.html`, `/a/b` stand in this order: `/a` is not followed by what
//! lies below it. With `/` as the lowest byte of all it is. Only paths need that: among hosts the order of bytes is that
//! of the tree, because nothing that a label holds in a normal key sorts between `)` and `,`, and no label is empty.

use std::borrow::Cow;

/// Stands for the space that ends a key where more key fields follow: before everything.
const END: u8 = 1;

/// Stands for `/` in paths: before everything but the end.
pub(super) const SLASH: u8 = 2;

/// Whether the order of bytes is that of the tree for a host, as it is for all that are normal. Of others, what lies below
/// a node may stand apart: `com,a)/`, `com,a+b)/`, `com,a,b)/`; `com,)/`, `com,*`, `com,,a)/`.
pub(super) fn is_tree_ordered(host: &[u8]) -> bool {
    // Hosts are short: one walk is faster than any search.
    let mut before = b' ';
    for &byte in host {
        if matches!(byte, b'*' | b'+') || byte == b',' && before == b',' {
            return false;
        }
        before = byte;
    }
    before != b','
}

/// What stands for a byte of a key. Hosts have none that changes.
pub(super) fn tree_byte(byte: u8) -> u8 {
    match byte {
        b' ' => END,
        b'/' => SLASH,
        other => other,
    }
}

/// Changes keys, or one, so that their bytes are in the order of the tree.
pub(super) fn write_tree_key(key: &mut [u8]) {
    for byte in key {
        *byte = tree_byte(*byte);
    }
}

/// Turns a key in the order of the tree, or a beginning of one, back into one as files have it.
pub(super) fn restore_key(key: &mut [u8]) {
    for byte in key {
        *byte = match *byte {
            END => b' ',
            SLASH => b'/',
            other => other,
        };
    }
}

/// The key field that maps are searched by, of a key in the order of the tree, and the further ones as files have them.
pub(super) fn split_tree_key(key: &[u8]) -> (&[u8], Cow<'_, [u8]>) {
    let Some(end) = memchr::memchr(END, key) else {
        return (key, Cow::Borrowed(b""));
    };
    let extra = &key[end + 1..];
    // A year has nothing to turn back; media types have a slash, and several fields spaces between them.
    if memchr::memchr2(END, SLASH, extra).is_none() {
        return (&key[..end], Cow::Borrowed(extra));
    }
    let mut restored = extra.to_vec();
    restore_key(&mut restored);
    (&key[..end], Cow::Owned(restored))
}

/// How many bytes two keys begin with in common.
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
