//! Plain-text URL lists.

use super::LinkKind;
use super::references::References;

/// Adds the sitemaps that a `robots.txt` names, anywhere in it.
pub fn robots(text: &str, out: &mut References) {
    for line in lines(text) {
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("sitemap")
        {
            let value = value.split_whitespace().next().unwrap_or_default();
            out.add(value, LinkKind::List);
        }
    }
}

/// Adds the URLs of a plain-text sitemap, one per line.
pub fn urls(text: &str, out: &mut References) {
    for line in lines(text) {
        // A line of prose is a valid relative reference, but not a URL.
        if line.starts_with("http://") || line.starts_with("https://") {
            out.add(line, LinkKind::Page);
        }
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r']).map(str::trim)
}
