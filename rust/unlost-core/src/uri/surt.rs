//! SURT, the sort-friendly form of a URL, and back.

use super::escape::{decode_fully, push_escape};
use super::path_query::{self, KeyForm};
use super::segments::Segments;
use super::{RuleSet, UriError, WebUrl, host};

/// Appends the SURT of a URL: `uk,co,bbc,news)/images?height=80`.
///
/// Scheme, userinfo and fragment are dropped; the port is retained unless it is the scheme's default.
pub fn surt(url: &WebUrl<'_>, rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    write(url, rules, KeyForm::Surt, out)
}

pub(super) fn write(
    url: &WebUrl<'_>,
    rules: RuleSet,
    usage: KeyForm,
    out: &mut Vec<u8>,
) -> Result<(), UriError> {
    host::write(&url.host().ok_or(UriError::NoHost)?, usage, out)?;
    if let Some(port) = url.port() {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    out.push(b')');
    path_query::write(url.path_query(), rules, usage, out)
}

/// Appends the canonical form of a URL, with its original scheme.
pub fn canonical(url: &WebUrl<'_>, rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    let mut key = Vec::with_capacity(url.path_query().len() + 64);
    surt(url, rules, &mut key)?;
    write_url(url.scheme(), &Segments::of(&key), out);
    Ok(())
}

/// Appends a URL with the given SURT. SURTs do not distinguish http from https. The result is http, except for port 80:
/// a SURT contains the port only if it is not the scheme's default, so the scheme was https.
///
/// The SURT must be normalized by [`super::surt_of_uri`]. A host that no URL can have is an error.
pub fn unsurt(surt: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    let segments = Segments::of(surt);
    let scheme = if segments.port() == Some(b"80") {
        "https"
    } else {
        "http"
    };
    let start = out.len();
    write_url(scheme, &segments, out);
    let mut again = Vec::with_capacity(surt.len());
    let read =
        WebUrl::read(&out[start..]).and_then(|url| write(&url, rules, KeyForm::Surt, &mut again));
    if read.is_err() || again != surt {
        out.truncate(start);
        return Err(UriError::BadHost {
            reason: "no address has it".to_owned(),
        });
    }
    Ok(())
}

fn write_url(scheme: &str, segments: &Segments<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(scheme.as_bytes());
    out.extend_from_slice(b"://");
    let labels: Vec<&[u8]> = segments.host().split(|&byte| byte == b',').collect();
    for (i, label) in labels.into_iter().rev().enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        write_host_label(label, out);
    }
    if let Some(port) = segments.port() {
        out.push(b':');
        out.extend_from_slice(port);
    }
    out.extend_from_slice(segments.path_query());
}

/// A SURT's label as it appears in a URL. Parentheses stay escaped, so that `http://(a)/` is never written: it would be
/// parsed as the long form of a SURT.
fn write_host_label(label: &[u8], out: &mut Vec<u8>) {
    let mut decoded = Vec::with_capacity(label.len());
    decode_fully(label, &mut decoded);
    for byte in decoded {
        if matches!(byte, b'(' | b')') {
            push_escape(byte, true, out);
        } else {
            out.push(byte);
        }
    }
}
