//! Splits a key once for all policies.

use crate::mementomap::frequency::write_number;
use crate::uri::{Policy, Segments, Suffixes};

/// Where a key can be cut. The parts that depend only on the host are reused for the next key of the same host.
#[derive(Debug, Default)]
pub(super) struct KeyCut {
    /// The last host, with its port.
    host: Vec<u8>,
    /// The ends of its labels; one for an IP address.
    label_ends: Vec<usize>,
    /// The length of the registered domain, without the port.
    domain_len: usize,
    /// The number of labels below it.
    subdomains: usize,
    /// ` :81` if the registered domain itself has a port, which its key does not show.
    port: Vec<u8>,
    /// The ends of path segments.
    path_ends: Vec<usize>,
    /// `1/2/3/i`: labels, segments, parameters and initial.
    counts: Vec<u8>,
    /// The end of each of them.
    count_ends: [usize; 4],
    /// Whether it is a normalized key without empty segments.
    is_regular: bool,
}

/// A key in pieces to be concatenated.
pub(super) type KeyParts<'a> = [&'a [u8]; 4];

impl KeyCut {
    /// Finds where another key can be cut.
    pub(super) fn take(&mut self, key: &[u8], suffixes: &Suffixes) {
        let host_end = memchr::memchr(b')', key).unwrap_or(key.len());
        if self.host != key[..host_end] || self.label_ends.is_empty() {
            self.take_host(&key[..host_end], suffixes);
        }
        let path = key.get(host_end + 1..).unwrap_or_default();
        let query = memchr::memchr(b'?', path);
        let (path, query) = match query {
            Some(mark) => (&path[..mark], &path[mark + 1..]),
            None => (path, &b""[..]),
        };
        self.path_ends.clear();
        self.is_regular = path == b"/" && !self.label_ends.is_empty();
        if path.len() > 1 && path[0] == b'/' {
            let start = host_end + 1;
            let slashes = memchr::memchr_iter(b'/', &path[1..]).map(|at| start + 1 + at);
            self.path_ends.extend(slashes);
            self.path_ends.push(start + path.len());
            let mut before = start;
            self.is_regular = !self.label_ends.is_empty();
            for &end in &self.path_ends {
                self.is_regular &= end > before + 1;
                before = end;
            }
        }
        self.count(path, query);
    }

    fn take_host(&mut self, host: &[u8], suffixes: &Suffixes) {
        self.host.clear();
        self.host.extend_from_slice(host);
        self.label_ends.clear();
        self.port.clear();
        let segments = Segments::of(host);
        let name = segments.host();
        let labels: Vec<&[u8]> = if segments.is_ip() {
            vec![name]
        } else {
            name.split(|&byte| byte == b',').collect()
        };
        if labels.iter().any(|label| label.is_empty()) {
            return;
        }
        let registered = if segments.is_ip() {
            1
        } else {
            suffixes.registered_len(&labels)
        };
        let mut end = 0;
        for (i, label) in labels.iter().enumerate() {
            end += usize::from(i > 0) + label.len();
            self.label_ends.push(end);
        }
        self.domain_len = self.label_ends[registered - 1];
        self.subdomains = labels.len() - registered;
        if let Some(last) = self.label_ends.last_mut() {
            *last = host.len();
        }
        if self.subdomains == 0 && host.len() > self.domain_len {
            self.port.push(b' ');
            self.port.extend_from_slice(&host[self.domain_len..]);
        }
    }

    fn count(&mut self, path: &[u8], query: &[u8]) {
        let parameters = query
            .split(|&byte| byte == b'&')
            .filter(|parameter| !parameter.is_empty())
            .count();
        let initial = path.get(1).filter(|byte| byte.is_ascii_alphanumeric());
        self.counts.clear();
        write_number(self.subdomains as u64, &mut self.counts);
        self.count_ends[0] = self.counts.len();
        for (i, count) in [self.path_ends.len(), parameters].into_iter().enumerate() {
            self.counts.push(b'/');
            write_number(count as u64, &mut self.counts);
            self.count_ends[i + 1] = self.counts.len();
        }
        self.counts.extend([b'/', *initial.unwrap_or(&b'-')]);
        self.count_ends[3] = self.counts.len();
    }

    /// The key under a policy of the last key, which must be passed again. If it represents a host with a port that it
    /// does not contain, the port follows after a space. `None` if the key is not normalized.
    pub(super) fn key<'a>(&'a self, policy: Policy, key: &'a [u8]) -> Option<KeyParts<'a>> {
        if !self.is_regular {
            return None;
        }
        let counted = match policy {
            Policy::Segments { host, path } => return Some(self.segments(host, path, key)),
            Policy::Whole => return Some([key, b"", b"", b""]),
            Policy::Domain => 0,
            Policy::Subdomains => self.count_ends[0],
            Policy::PathDepth => self.count_ends[1],
            Policy::QueryLength => self.count_ends[2],
            Policy::Initial => self.count_ends[3],
        };
        Some([
            &key[..self.domain_len],
            b")/",
            &self.counts[..counted],
            &self.port,
        ])
    }

    fn segments<'a>(&self, host: Option<u32>, path: Option<u32>, key: &'a [u8]) -> KeyParts<'a> {
        let limit = |limit: Option<u32>| limit.map_or(usize::MAX, |limit| limit as usize);
        let (labels, segments) = (limit(host), limit(path));
        if labels < self.label_ends.len() {
            return [&key[..self.label_ends[labels - 1]], b")/", b"", b""];
        }
        let kept_segments = segments.min(self.path_ends.len());
        let end = match kept_segments {
            0 => self.host.len() + 2,
            kept_segments => self.path_ends[kept_segments - 1],
        };
        [&key[..end], b"", b"", b""]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::{ALL_POLICIES, Section};

    #[test]
    fn cut_key_equals_policy_key() {
        let suffixes = Suffixes::built_in(Section::All);
        let mut cut = KeyCut::default();
        for key in [
            "uk,co,bbc,news)/images/logo.png?height=80&rotate=90&width=200",
            "uk,co,bbc,news)/images/logo.png",
            "uk,co,bbc,news)/",
            "uk,co,bbc,news)/?q",
            "uk,co)/a?",
            "com,example:81)/a/b?&x&&y",
            "com,example,a:81)/-a/b/c/d/e/f/g",
            "4,3,2,1)/a",
            "4,3,2,1:81)/",
            "[2001:db8::1]:81)/a",
            "localhost)/%2a",
            "localhost:8080)/",
            "com,a%2bb)/x,y)z",
        ] {
            cut.take(key.as_bytes(), &suffixes);
            for name in ALL_POLICIES.into_iter().chain(["H2Px", "H1P1", "HxP9"]) {
                let policy: Policy = name.parse().expect(name);
                let mut expected = Vec::new();
                policy.write_key(&Segments::of(key.as_bytes()), &suffixes, &mut expected);
                let parts = cut.key(policy, key.as_bytes()).expect("a normal key");
                assert_eq!(parts[..3].concat(), expected, "{name} of {key}");
            }
        }
    }

    #[test]
    fn port_follows_a_domain_key() {
        let suffixes = Suffixes::built_in(Section::All);
        let mut cut = KeyCut::default();
        for (key, port) in [
            ("com,example:81)/a", " :81"),
            ("com,example,b:81)/a", ""),
            ("4,3,2,1:81)/a", " :81"),
            ("[::1]:81)/a", " :81"),
            ("com,example)/a", ""),
        ] {
            cut.take(key.as_bytes(), &suffixes);
            let parts = cut.key(Policy::Subdomains, key.as_bytes()).expect(key);
            assert_eq!(parts[3], port.as_bytes(), "{key}");
            let parts = cut
                .key("HxP0".parse().expect("a policy"), key.as_bytes())
                .expect(key);
            assert_eq!(parts[3], b"", "{key}");
        }
    }

    #[test]
    fn irregular_key_is_not_cut() {
        let suffixes = Suffixes::built_in(Section::All);
        let mut cut = KeyCut::default();
        for key in [
            "com,a",
            "com,a)",
            "com,a)/b/",
            "com,a)//b",
            "com,,a)/",
            ")/",
            "",
        ] {
            cut.take(key.as_bytes(), &suffixes);
            assert_eq!(cut.key(Policy::Domain, key.as_bytes()), None, "{key}");
        }
    }
}
