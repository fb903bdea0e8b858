//! The one segmenter: splits keys into host labels, path segments and query, everywhere.

/// A view of a normalized key. An IP address is one host label, since half of one is meaningless; a port belongs to the
/// last label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments<'a> {
    host_and_port: &'a [u8],
    host_len: usize,
    path_query: &'a [u8],
    path_len: usize,
    len: usize,
}

impl<'a> Segments<'a> {
    /// Splits a key. Never fails: without a `)` all of it is the host.
    #[must_use]
    pub fn of(key: &'a [u8]) -> Self {
        let host_end = memchr::memchr(b')', key).unwrap_or(key.len());
        let host_and_port = &key[..host_end];
        let path_query = key.get(host_end + 1..).unwrap_or_default();
        Self {
            host_and_port,
            host_len: host_len(host_and_port),
            path_query,
            path_len: memchr::memchr(b'?', path_query).unwrap_or(path_query.len()),
            len: key.len(),
        }
    }

    /// The host without its port: `uk,co,bbc`.
    #[must_use]
    pub fn host(&self) -> &'a [u8] {
        &self.host_and_port[..self.host_len]
    }

    /// The port's digits.
    #[must_use]
    pub fn port(&self) -> Option<&'a [u8]> {
        self.host_and_port.get(self.host_len + 1..)
    }

    /// Whether the host is an IPv4 or IPv6 address.
    #[must_use]
    pub fn is_ip(&self) -> bool {
        is_ip(self.host())
    }

    /// Whether the host belongs to no domain: it is an IP address, or sorts among them, since its top label is a
    /// number, unlike any name's.
    #[must_use]
    pub fn is_outside_domains(&self) -> bool {
        let top = self.host().split(|&byte| byte == b',').next();
        self.is_ip() || top.is_some_and(|top| !top.is_empty() && top.iter().all(u8::is_ascii_digit))
    }

    /// The labels from the top down, the port on the last: `uk`, `co`, `bbc:8080`.
    pub fn host_labels(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let whole = self.is_ip();
        self.host_and_port
            .split(move |&byte| byte == b',' && !whole)
            .filter(|label| !label.is_empty())
    }

    /// The length of host and port in the key.
    #[must_use]
    pub fn host_end(&self) -> usize {
        self.host_and_port.len()
    }

    /// The length of the key without its query.
    #[must_use]
    pub fn path_end(&self) -> usize {
        self.len - (self.path_query.len() - self.path_len)
    }

    /// The lengths of the prefixes that end in the comma after each label but the last: those of `uk,` and `uk,co,`. An
    /// IP address is one label and has none.
    pub fn host_stems(&self) -> impl Iterator<Item = usize> + use<'a> {
        let names = if self.is_ip() {
            &[]
        } else {
            self.host_and_port
        };
        memchr::memchr_iter(b',', names).map(|comma| comma + 1)
    }

    /// The lengths of the prefixes that end in each slash of the path: those of `uk,co,bbc)/` and `uk,co,bbc)/a/`.
    pub fn path_stems(&self) -> impl Iterator<Item = usize> + use<'a> {
        let before = self.host_end() + 2;
        memchr::memchr_iter(b'/', &self.path_query[..self.path_len])
            .map(move |slash| before + slash)
    }

    /// Path and query verbatim, with the leading `/`.
    #[must_use]
    pub fn path_query(&self) -> &'a [u8] {
        self.path_query
    }

    /// The path's segments, without empty ones.
    pub fn path_segments(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.path_query[..self.path_len]
            .split(|&byte| byte == b'/')
            .filter(|segment| !segment.is_empty())
    }

    /// The text after the `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'a [u8]> {
        self.path_query.get(self.path_len + 1..)
    }

    /// The query's parameters, without empty ones.
    pub fn parameters(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.query()
            .unwrap_or_default()
            .split(|&byte| byte == b'&')
            .filter(|parameter| !parameter.is_empty())
    }
}

/// The offset of the port's colon, or the end.
fn host_len(host_and_port: &[u8]) -> usize {
    let after = if host_and_port.first() == Some(&b'[') {
        memchr::memchr(b']', host_and_port).map_or(0, |end| end + 1)
    } else {
        0
    };
    memchr::memchr(b':', &host_and_port[after..]).map_or(host_and_port.len(), |colon| after + colon)
}

/// Whether a SURT's host is an IP address: `[2001:db8::1]`, or four numbers. A name never has a number as its top
/// label.
fn is_ip(host: &[u8]) -> bool {
    match host.first() {
        Some(b'[') => true,
        Some(first) if first.is_ascii_digit() => {
            let octets = || host.split(|&byte| byte == b',');
            octets().count() == 4
                && octets().all(|octet| {
                    matches!(octet.len(), 1..=3) && octet.iter().all(u8::is_ascii_digit)
                })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(key: &str) -> (Vec<&str>, Vec<&str>, Option<&str>) {
        let text = |bytes| std::str::from_utf8(bytes).expect("ascii");
        let segments = Segments::of(key.as_bytes());
        (
            segments.host_labels().map(text).collect(),
            segments.path_segments().map(text).collect(),
            segments.query().map(text),
        )
    }

    #[test]
    fn keys_are_split_alike_for_all_hosts() {
        assert_eq!(
            cut("uk,co,bbc:8080)/a/b?c=1&d"),
            (vec!["uk", "co", "bbc:8080"], vec!["a", "b"], Some("c=1&d"))
        );
        assert_eq!(cut("4,3,2,1)/a"), (vec!["4,3,2,1"], vec!["a"], None));
        assert_eq!(cut("4,3,2,1:81)/"), (vec!["4,3,2,1:81"], vec![], None));
        assert_eq!(
            cut("[2001:db8::1]:81)/?q"),
            (vec!["[2001:db8::1]:81"], vec![], Some("q"))
        );
        assert_eq!(
            cut("localhost)/a)b"),
            (vec!["localhost"], vec!["a)b"], None)
        );
        assert_eq!(cut("com,example"), (vec!["com", "example"], vec![], None));
    }

    #[test]
    fn stems_end_at_wildcard_positions() {
        let stems = |key: &'static str| -> Vec<&str> {
            let cut = Segments::of(key.as_bytes());
            cut.host_stems()
                .chain(cut.path_stems())
                .map(|stem| &key[..stem])
                .collect()
        };
        assert_eq!(
            stems("uk,co,bbc:81)/a/b?c/d,e"),
            ["uk,", "uk,co,", "uk,co,bbc:81)/", "uk,co,bbc:81)/a/"]
        );
        assert_eq!(stems("4,3,2,1)/a"), ["4,3,2,1)/"]);
        assert_eq!(stems("com,example"), ["com,"]);
        for (key, end) in [("a)/b?c", 4), ("a)/b", 4), ("a)", 2), ("a", 1), ("a)?b", 2)] {
            assert_eq!(Segments::of(key.as_bytes()).path_end(), end, "{key}");
        }
    }

    #[test]
    fn ports_are_distinguished_from_ip_addresses() {
        assert_eq!(Segments::of(b"[2001:db8::1])/").port(), None);
        assert_eq!(Segments::of(b"[2001:db8::1]:81)/").port(), Some(&b"81"[..]));
        assert_eq!(Segments::of(b"com,a:81)/x:9").port(), Some(&b"81"[..]));
    }
}
