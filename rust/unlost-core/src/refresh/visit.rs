//! One visit to a page, as in a log.

/// The data of one visit. Texts are verbatim.
#[derive(Debug, Clone, Copy, Default)]
pub struct Visit<'a> {
    /// The requested page, before redirects.
    pub uri: &'a [u8],
    /// Milliseconds since 1970.
    pub time: i64,
    /// The HTTP status of the last response; 0 if there was none.
    pub status: i64,
    /// A digest of the body without transfer and content codings.
    pub digest: Option<&'a [u8]>,
    /// A digest of the visible text of the body.
    pub text_digest: Option<&'a [u8]>,
    /// The header `ETag`.
    pub etag: Option<&'a [u8]>,
    /// The header `Last-Modified`.
    pub last_modified: Option<&'a [u8]>,
    /// The header `Date`.
    pub date: Option<&'a [u8]>,
    /// The header `Content-Length`.
    pub content_length: Option<i64>,
    /// The header `Repr-Digest`, or its predecessors.
    pub repr_digest: Option<&'a [u8]>,
    /// The header `Cache-Control`.
    pub cache_control: Option<&'a [u8]>,
    /// The header `Expires`.
    pub expires: Option<&'a [u8]>,
    /// The header `Age`, in seconds.
    pub age: Option<i64>,
    /// The header `Server`.
    pub server: Option<&'a [u8]>,
    /// The number of visits that it represents: more than one if it was randomly picked among skipped ones.
    pub weight: Option<i64>,
}
