//! Keys that other tools derive for a URL where they disagree with ours.
//!
//! Building repairs rows with a disputed key column. A row with a plain key is not compared with its URL, so a look-up
//! that finds nothing under a URL's own key tries these as well.

use url::{Host, quirks};

use super::key::{has_parent_segment, key_of_uri, looks_like_surt};
use super::path_query::{self, KeyForm};
use super::web_url::{has_web_scheme, trim};
use super::{RuleSet, Segments, host};

/// The keys, without that of [`key_of_uri`]; nearly always none.
#[must_use]
pub fn alternative_keys(text: &[u8], rules: RuleSet) -> Vec<Vec<u8>> {
    let text = trim(text);
    if !may_have_alternatives(text) {
        return Vec::new();
    }
    let mut key = Vec::new();
    if key_of_uri(text, rules, &mut key).is_err() {
        return Vec::new();
    }
    let segments = Segments::of(&key);
    let mut names = vec![segments.host().to_vec()];
    let mut ports = vec![segments.port()];
    let mut tails = vec![segments.path_query().to_vec()];
    names.extend(transitional_name(segments.host()));
    // A SURT does not show which port is the default.
    let is_surt = looks_like_surt(text);
    match segments.port() {
        Some(b"0") => ports.push(None),
        Some(b"80" | b"443") if is_surt => ports.push(None),
        _ => {}
    }
    let mut nested = None;
    if !is_surt {
        let url = RawUrl::of(text);
        ports.extend(url.default_port().map(Some));
        tails.extend(url.tail_decoded_first(rules));
        nested = url.nested();
    }
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for name in &names {
        for port in &ports {
            let port = port.map_or(Vec::new(), |port| [b":", port].concat());
            keys.extend(
                tails
                    .iter()
                    .map(|path_query| [name, &port[..], b")", path_query].concat()),
            );
        }
    }
    if let Some(nested) = nested {
        let mut inner = Vec::new();
        if key_of_uri(nested, rules, &mut inner).is_ok() {
            keys.push(inner);
        }
    }
    let mut seen = vec![key];
    keys.retain(|key| {
        let is_new = !seen.contains(key);
        if is_new {
            seen.push(key.clone());
        }
        is_new
    });
    keys
}

/// Fast check for alternatives. May return true if there are none.
fn may_have_alternatives(text: &[u8]) -> bool {
    let RawUrl {
        authority,
        path_query,
        ..
    } = RawUrl::of(text);
    let is_surt = authority.contains(&b')');
    let is_special =
        |&byte: &u8| byte >= 0x80 || matches!(byte, b':' | b'%') || (byte == b',' && !is_surt);
    authority.iter().any(is_special)
        || authority.windows(2).any(|pair| pair == b"--")
        || has_parent_segment(path_query)
}

/// A host name as IDNA 2003 maps it, if that differs: `ß` is `ss` there, `ς` is `σ`, and joiners are dropped.
fn transitional_name(name: &[u8]) -> Option<Vec<u8>> {
    memchr::memmem::find(name, b"xn--")?;
    let labels: Vec<&[u8]> = name.rsplit(|&byte| byte == b',').collect();
    let name = String::from_utf8(labels.join(&b'.')).ok()?;
    let unicode = quirks::domain_to_unicode(&name);
    let mapped = unicode
        .replace('ß', "ss")
        .replace('ς', "σ")
        .replace(['\u{200c}', '\u{200d}'], "");
    if mapped == unicode {
        return None;
    }
    let Ok(Host::Domain(name)) = Host::parse(&mapped) else {
        return None;
    };
    let mut out = Vec::new();
    host::write(&Host::Domain(name.as_bytes()), KeyForm::Key, &mut out).ok()?;
    Some(out)
}

/// A URL, split at its delimiters only.
struct RawUrl<'a> {
    is_https: bool,
    authority: &'a [u8],
    path_query: &'a [u8],
}

impl<'a> RawUrl<'a> {
    fn of(text: &'a [u8]) -> Self {
        let is_web = has_web_scheme(text);
        let colon = if is_web {
            memchr::memchr(b':', text).map_or(0, |colon| colon + 1)
        } else {
            0
        };
        let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
        let rest = &text[colon..];
        let slashes = rest.iter().take_while(|byte| is_slash(byte)).count();
        let rest = &rest[slashes..];
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b'/' | b'\\' | b'?' | b'#'));
        let (authority, path_query) = rest.split_at(end.unwrap_or(rest.len()));
        Self {
            is_https: is_web && colon == b"https:".len(),
            authority,
            path_query: &path_query[..memchr::memchr(b'#', path_query).unwrap_or(path_query.len())],
        }
    }

    /// The port, if it is written although it is the scheme's default.
    fn default_port(&self) -> Option<&'static [u8]> {
        let colon = memchr::memrchr(b':', self.authority)?;
        let own: &[u8] = if self.is_https { b"443" } else { b"80" };
        (&self.authority[colon + 1..] == own).then_some(own)
    }

    /// Path and query with escapes decoded before `..` is resolved, if there is any. Browsers resolve it first.
    fn tail_decoded_first(&self, rules: RuleSet) -> Option<Vec<u8>> {
        if !has_parent_segment(self.path_query) {
            return None;
        }
        let mut out = Vec::new();
        path_query::write(self.path_query, rules, KeyForm::Key, &mut out).ok()?;
        Some(out)
    }

    /// The URL after another scheme: `surt` drops the first one of `http://http://a.com/`.
    fn nested(&self) -> Option<&'a [u8]> {
        let is_scheme = [&b"http:"[..], b"https:"]
            .iter()
            .any(|scheme| self.authority.eq_ignore_ascii_case(scheme));
        is_scheme
            .then(|| self.path_query.strip_prefix(b"//"))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alternatives(text: &str) -> Vec<String> {
        alternative_keys(text.as_bytes(), RuleSet::Wayback)
            .into_iter()
            .map(|key| String::from_utf8(key).expect("ascii"))
            .collect()
    }

    #[test]
    fn keys_of_other_tools_are_listed() {
        for (text, expected) in [
            ("http://stra\u{df}e.de/x", &["de,strasse)/x"][..]),
            ("http://xn--strae-oqa.de:81/x", &["de,strasse:81)/x"]),
            ("de,xn--strae-oqa)/x", &["de,strasse)/x"]),
            ("http://\u{3c2}.gr/", &["gr,xn--4xa)/"]),
            ("http://b\u{fc}cher.de/", &[]),
            ("http://a.com/a%2Fb/../x?y", &["com,a)/a/x?y"]),
            ("http://a.com/a/../x", &[]),
            ("http://a.com:80/x", &["com,a:80)/x"]),
            ("https://me:p@a.com:443/x", &["com,a:443)/x"]),
            ("a.com:80", &["com,a:80)/"]),
            ("http://a.com:8080/x", &[]),
            ("http://a.com:0/", &["com,a)/"]),
            (
                "http://fa\u{df}.de:0/",
                &["de,xn--fa-hia)/", "de,fass:0)/", "de,fass)/"],
            ),
            ("http://a,b.com/", &[]),
            ("http://http://a.com/b", &["com,a)/b"]),
            ("http://a.com/?u=http://b.com/", &[]),
            ("http://a.com/", &[]),
            ("http://a b/%", &[]),
        ] {
            assert_eq!(alternatives(text), expected, "{text}");
        }
    }
}
