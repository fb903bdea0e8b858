//! The block of a record: its HTTP header, digest, and decoded body.

use std::io::{Read, Result};

use sha1::{Digest, Sha1};

use super::Scanner;
use crate::warc::coding::{Body, BodyDecoder, BodyOptions, NotDecoded};
use crate::warc::fields;
use crate::warc::head::{Block, HeadResult, MAX_HTTP_HEAD, read_http};
use crate::warc::record::{Details, Record, sha1_digest};

/// The maximum length of a decoded body in bytes. Our limit against decompression bombs.
const MAX_BODY: u64 = 1 << 32;

/// The maximum ratio of decoded to stored length: slightly more than the 1,032 that deflate can reach.
const MAX_RATIO: u64 = 1100;

/// The decoded length that is always allowed: Brotli compresses a megabyte of zeros into a few bytes.
const MIN_DECODED_LIMIT: u64 = 1 << 20;

/// The state of a payload after its HTTP header.
#[derive(Default)]
struct Payload {
    has_bad_head: bool,
    /// The part of it that was read with the header.
    start: Vec<u8>,
    /// Whether its start could not be found.
    is_lost: bool,
}

impl<R: Read> Scanner<R> {
    /// Skips the block of a record, and adds the information in it and computed from it to the record.
    pub(super) fn read_block(
        &mut self,
        record: &mut Record,
        block: &mut Block,
        block_digest: Option<String>,
    ) -> Result<()> {
        let mut payload = Payload::default();
        if self.with_bodies && matches!(record.kind.as_str(), "response" | "resource" | "revisit") {
            record.details = Some(Box::default());
        }
        if record.has_response_head() {
            payload = self.read_http_head(record, block)?;
        } else {
            record.mime = record
                .content_type
                .as_deref()
                .and_then(|value| fields::media_type(value.as_bytes()));
            if record.kind != "request" {
                record.digest = record.digest.take().or(block_digest);
            }
            if let Some(details) = &mut record.details {
                details.payload_type.clone_from(&record.content_type);
            }
        }
        let mut body_decoder = match &record.details {
            Some(details) if !payload.is_lost && record.kind != "revisit" => {
                let len = block.left + payload.start.len() as u64;
                let mut body_decoder = BodyDecoder::new(&details.codings, body_options(len));
                body_decoder.feed(&payload.start);
                Some(body_decoder)
            }
            _ => None,
        };
        let computes = self.with_digests
            && !payload.is_lost
            && record.digest.is_none()
            && !matches!(record.kind.as_str(), "revisit" | "request" | "warcinfo");
        let mut hash = computes.then(|| Sha1::new_with_prefix(&payload.start));
        loop {
            let available = block.available(&mut self.text)?;
            if available == 0 {
                break;
            }
            if let Some(hash) = &mut hash {
                hash.update(&self.text.available()[..available]);
            }
            if let Some(body_decoder) = &mut body_decoder {
                body_decoder.feed(&self.text.available()[..available]);
            }
            block.consume(&mut self.text, available);
        }
        if block.is_cut {
            // The problem is that it is short, and the digest of half a payload is meaningless.
            return Ok(());
        }
        if let Some(hash) = hash {
            record.digest = Some(sha1_digest(&hash.finalize()));
        }
        if let (Some(body_decoder), Some(details)) = (body_decoder, &mut record.details) {
            let body = body_decoder.finish();
            add_body(details, &body);
            self.report_body(&body, record.offset);
        }
        if payload.has_bad_head && record.kind == "response" {
            self.report(
                "bad-http",
                record.offset,
                "expected an HTTP response with a status, found something else",
            );
        }
        Ok(())
    }

    fn report_body(&mut self, body: &Body, offset: u64) {
        if body.is_broken {
            let message = "a body breaks off in its transfer or content coding";
            self.report("cut-coding", offset, message);
        }
        match body.not_decoded {
            Some(NotDecoded::Coding) => {
                let message =
                    "a body is in a coding that cannot be undone: it is taken as it is stored";
                self.report("bad-coding", offset, message);
            }
            Some(NotDecoded::TooLong) => {
                let message = "a body is too long without its coding: it is taken as it is stored";
                self.report("coding-too-long", offset, message);
            }
            None => {}
        }
    }

    /// Reads the HTTP header in a block.
    fn read_http_head(&mut self, record: &mut Record, block: &mut Block) -> Result<Payload> {
        const MARK: &[u8] = b"HTTP/";
        let mut head = Vec::new();
        while head.len() < MARK.len() {
            let available = block
                .available(&mut self.text)?
                .min(MARK.len() - head.len());
            if available == 0 {
                break;
            }
            head.extend_from_slice(&self.text.available()[..available]);
            block.consume(&mut self.text, available);
        }
        if head != MARK {
            return Ok(Payload {
                has_bad_head: !head.is_empty(),
                start: head,
                is_lost: false,
            });
        }
        let is_lost = read_http(&mut self.text, block, &mut head)? == HeadResult::TooLong;
        if is_lost {
            let message = format!("an HTTP head has more than {MAX_HTTP_HEAD} bytes");
            self.report("header-too-long", record.offset, message);
        }
        Ok(Payload {
            has_bad_head: !record.add_http(&head),
            start: Vec::new(),
            is_lost,
        })
    }
}

/// The options for a body with this stored length.
fn body_options(len: u64) -> BodyOptions {
    BodyOptions {
        with_digest: true,
        head: 0,
        limit: len
            .saturating_mul(MAX_RATIO)
            .saturating_add(MIN_DECODED_LIMIT)
            .min(MAX_BODY)
            .max(len),
    }
}

fn add_body(details: &mut Details, body: &Body) {
    details.body_digest = body.digest;
    details.body_len = body.len;
    details.is_broken = body.is_broken;
}
