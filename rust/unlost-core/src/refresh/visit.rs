//! One visit to a page, as a log has it.

/// What was seen at one visit. Texts are as the server sent them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Visit<'a> {
    /// The page that was asked for, before redirects.
    pub uri: &'a [u8],
    /// Milliseconds since 1970.
    pub time: i64,
    /// The HTTP status of the last response; 0 if there was none.
    pub status: i64,
    /// A digest of the body without transfer and content codings.
    pub digest: Option<&'a [u8]>,
    /// A digest of what a reader sees of the body.
    pub text_digest: Option<&'a [u8]>,
    /// The header `ETag`.
    pub etag: Option<&'a [u8]>,
    /// The header `Last-Modified`.
    pub last_modified: Option<&'a [u8]>,
    /// The header `Date`.
    pub date: Option<&'a [u8]>,
    /// The header `Content-Length`.
    pub content_length: Option<i64>,
    /// The header `Repr-Digest`, or its ancestors.
    pub repr_digest: Option<&'a [u8]>,
    /// The header `Cache-Control`.
    pub cache_control: Option<&'a [u8]>,
    /// The header `Expires`.
    pub expires: Option<&'a [u8]>,
    /// The header `Age`, in seconds.
    pub age: Option<i64>,
    /// The header `Server`.
    pub server: Option<&'a [u8]>,
    /// How many visits it stands for: more than one where it was picked at random among skipped ones.
    pub weight: Option<i64>,
}
