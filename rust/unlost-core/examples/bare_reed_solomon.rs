//! Benchmarks the crate of the vault's erasure code alone, for comparison in `bench/vault.py`.
//!
//! usage: `bare_reed_solomon NEEDED COUNT BLOCK`: prints the seconds of coding and of decoding from spare blocks alone,
//! the best of three.

use std::time::Instant;

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

fn main() {
    let given: Vec<usize> = std::env::args()
        .skip(1)
        .map(|word| word.parse().expect("three numbers"))
        .collect();
    let [needed, count, block] = given[..] else {
        panic!("usage: bare_reed_solomon NEEDED COUNT BLOCK");
    };
    let mut state = 1_u64;
    let content: Vec<u8> = (0..needed * block)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_be_bytes()[0]
        })
        .collect();
    let (mut coding, mut decoding) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        let start = Instant::now();
        let mut encoder = ReedSolomonEncoder::new(needed, count - needed, block).unwrap();
        for row in content.chunks_exact(block) {
            encoder.add_original_shard(row).unwrap();
        }
        let spare: Vec<Vec<u8>> = encoder
            .encode()
            .unwrap()
            .recovery_iter()
            .map(<[u8]>::to_vec)
            .collect();
        coding = coding.min(start.elapsed().as_secs_f64());
        drop(encoder);
        let start = Instant::now();
        let mut decoder = ReedSolomonDecoder::new(needed, count - needed, block).unwrap();
        for (index, row) in spare.iter().enumerate().take(needed) {
            decoder.add_recovery_shard(index, row).unwrap();
        }
        let result = decoder.decode().unwrap();
        let mut back = vec![0; content.len()];
        for (index, row) in result.restored_original_iter() {
            back[index * block..][..block].copy_from_slice(row);
        }
        decoding = decoding.min(start.elapsed().as_secs_f64());
        assert!(back == content);
    }
    println!("{coding} {decoding}");
}
