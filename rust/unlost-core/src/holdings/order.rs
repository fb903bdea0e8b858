//! The two orders of keys: by bytes, as files are sorted, and by tree, in which a subtree stands together.

use std::cmp::Ordering;

/// How keys are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By bytes, as files are.
    Bytes,
    /// As a tree is walked: with `/` before every other byte, so that `/a`, `/a/b` come before `/a-b`, `/a.html`.
    ///
    /// Only paths need it. Among hosts the order of bytes is that of the tree, because nothing that a label holds
    /// in a key sorts between `)` and `,`.
    Tree,
}

impl Order {
    pub(super) fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Bytes => a.cmp(b),
            Self::Tree => tree(a, b),
        }
    }
}

/// Space ends a key where more fields follow, and is lower than `/`.
fn tree(a: &[u8], b: &[u8]) -> Ordering {
    let rank = |byte: u8| match byte {
        b' ' => 0,
        b'/' => 1,
        other => other.max(2),
    };
    let common = a.iter().zip(b).position(|(a, b)| a != b);
    match common {
        Some(at) => rank(a[at]).cmp(&rank(b[at])),
        None => a.len().cmp(&b.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subtree_stands_together() {
        let mut keys = [
            "com,a)/a-b",
            "com,a)/a.html",
            "com,a)/a/b",
            "com,a)/a 2014",
            "com,a)/",
            "com,a)/a/*",
            "com,a)/a/b/c",
            "com,a)/a/b-c",
        ];
        keys.sort_by(|a, b| Order::Tree.compare(a.as_bytes(), b.as_bytes()));
        assert_eq!(
            keys,
            [
                "com,a)/",
                "com,a)/a 2014",
                "com,a)/a/*",
                "com,a)/a/b",
                "com,a)/a/b/c",
                "com,a)/a/b-c",
                "com,a)/a-b",
                "com,a)/a.html",
            ]
        );
    }
}
