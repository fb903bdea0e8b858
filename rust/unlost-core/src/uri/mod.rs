//! URLs: parsed, canonicalized, and converted to sort-friendly keys.
//!
//! Data flows one way:
//!
//! ```text
//! bytes ─ URL (scheme, WHATWG parse) ─ host, path and query (rules) ─ surt ─┐
//! an index's own key column ────────────────────────────────────────────────┴─ key ─ segments ─ policy ─ URI-Key
//! ```

mod alternatives;
mod error;
mod escape;
mod host;
mod key;
mod name;
mod path_query;
mod plain;
mod policy;
mod rules;
mod segments;
mod session;
mod suffixes;
mod surt;
mod surt_host;
mod web_url;

pub use alternatives::alternative_keys;
pub use error::UriError;
pub use key::{
    is_disputed, key_of_row, key_of_uri, looks_like_surt, normal_key, page_of_uri, spellings,
    surt_of_uri,
};
pub use name::name;
pub use plain::{plain_page, plain_page_from, plain_uri};
pub use policy::{ALL_POLICIES, Policy, PolicyError};
pub use rules::{RuleSet, UnknownRuleSet};
pub use segments::Segments;
pub use suffixes::{Section, SuffixError, Suffixes};
pub use surt::{canonical, surt, unsurt};
pub use web_url::{MAX_BYTES, WebUrl, foreign_scheme};
