//! A binary fuse filter of four slots per key, with fingerprints of 1 to 16 bits (Graf and Lemire, "Binary Fuse
//! Filters: Fast and Smaller Than Xor Filters", 2022).
//!
//! A key has one slot in each of four consecutive segments; the XOR of their fingerprints is that of the key. Such an
//! array exists if the keys can be peeled off one by one, each from a slot that only it occupies at that point. With
//! slightly more slots than keys that nearly always succeeds. If not, another seed is tried.

/// Slots per key.
const ARITY: u32 = 4;

/// The number of keys from which on a segment has 2^1, 2^2 and so on slots: powers of 2.91 with half a power more, the
/// optimum found by the authors.
const SEGMENT_STEPS: [usize; 12] = [
    5, 15, 42, 123, 356, 1_037, 3_015, 8_772, 25_525, 74_277, 216_143, 628_975,
];

/// After this many failed seeds, slots are added. Nearly all fuses need one or two seeds; with 3,000 keys every second
/// one fails.
const SEEDS_A_SIZE: u32 = 32;

/// Bytes after the fingerprints, so that each can be read with its neighbours.
pub(super) const PADDING: usize = 3;

/// The size of a fuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FuseShape {
    /// The number of segments in which the first slot of a key may be; 0 without keys.
    pub(super) starts: u32,
    /// The binary logarithm of the slots per segment.
    pub(super) log: u8,
}

impl FuseShape {
    /// The default for this many keys, enlarged `growth` times.
    fn of(keys: usize, growth: u32) -> Self {
        if keys == 0 {
            return Self { starts: 0, log: 0 };
        }
        let log = SEGMENT_STEPS.partition_point(|&step| step <= keys);
        // The fewer keys, the more slots each needs. This stays below 1.2 slots per key plus 390.
        let row_filter = keys + keys / 10 + (keys / 12).min(2200) + 160;
        let row_filter = row_filter + (keys / 16 + 32) * growth as usize;
        let segments = row_filter.div_ceil(1 << log).max(ARITY as usize);
        Self {
            // A partition has at most a few hundred thousand keys.
            starts: u32::try_from(segments).unwrap_or(u32::MAX) - (ARITY - 1),
            log: u8::try_from(log).unwrap_or(u8::MAX),
        }
    }

    /// Whether all slots can be numbered with 32 bits, as in every valid fuse.
    pub(super) fn is_sound(self) -> bool {
        let segments = u64::from(self.starts) + u64::from(ARITY);
        self.log < 32 && u32::try_from(segments << self.log).is_ok()
    }

    /// The number of slots.
    pub(super) fn slots(self) -> usize {
        if self.starts == 0 {
            0
        } else {
            (self.starts as usize + ARITY as usize - 1) << self.log
        }
    }

    /// Their size in bytes.
    pub(super) fn bytes(self, bits: u8) -> usize {
        (self.slots() * usize::from(bits)).div_ceil(8) + PADDING
    }
}

/// The slots of a key, and its mixed hash.
#[derive(Debug, Clone, Copy)]
struct KeySlots {
    slots: [u32; 4],
    mixed: u64,
}

impl KeySlots {
    #[inline]
    fn of(mixed: u64, shape: FuseShape) -> Self {
        let length = 1u32 << shape.log;
        let mask = u64::from(length - 1);
        // The upper half of the product is below the second factor: at most 32 bits.
        let start = u128::from(mixed) * (u128::from(shape.starts) << shape.log);
        #[allow(clippy::cast_possible_truncation)]
        let (first, offset) = ((start >> 64) as u32, |by: u32| (mixed >> by & mask) as u32);
        Self {
            slots: [
                first,
                (first + length) ^ offset(36),
                (first + 2 * length) ^ offset(18),
                (first + 3 * length) ^ offset(0),
            ],
            mixed,
        }
    }

    #[inline]
    fn fingerprint(self, bits: u8) -> u16 {
        // At most 16 bits are left.
        #[allow(clippy::cast_possible_truncation)]
        let print = (self.mixed.wrapping_mul(GOLDEN) >> (64 - u32::from(bits))) as u16;
        print
    }
}

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes the hash of a key with a seed; injective (the last steps of `MurmurHash3`).
#[inline]
fn mix(hash: u64, seed: u32) -> u64 {
    let mut mixed = hash ^ u64::from(seed).wrapping_mul(GOLDEN);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

/// Whether the fuse with these fingerprints contains a hash. The length of `bytes` must be that of the shape.
#[inline]
pub(super) fn has(bytes: &[u8], shape: FuseShape, seed: u32, bits: u8, hash: u64) -> bool {
    if shape.starts == 0 {
        return false;
    }
    let key_slots = KeySlots::of(mix(hash, seed), shape);
    let print = |slot: u32| {
        let bit = slot as usize * usize::from(bits);
        let mut word = [0; 4];
        word.copy_from_slice(&bytes[bit / 8..bit / 8 + 4]);
        u32::from_le_bytes(word) >> (bit % 8)
    };
    let [a, b, c, d] = key_slots.slots.map(print);
    let mask = (1u32 << bits) - 1;
    (a ^ b ^ c ^ d) & mask == u32::from(key_slots.fingerprint(bits))
}

/// A built fuse.
#[derive(Debug)]
pub(super) struct Fuse {
    pub(super) shape: FuseShape,
    pub(super) seed: u32,
    pub(super) bytes: Vec<u8>,
}

impl Fuse {
    /// Builds a fuse of sorted, unique hashes: in another order the result might differ.
    pub(super) fn of(hashes: &[u64], bits: u8) -> Self {
        let first = first_seed(hashes);
        let mut peeler = Peeler::default();
        let mut tries = 0;
        loop {
            let seed = first.wrapping_add(tries);
            let shape = FuseShape::of(hashes.len(), tries / SEEDS_A_SIZE);
            if peeler.peel(hashes, shape, seed) {
                let bytes = pack(&peeler.fingerprints(shape, bits), shape, bits);
                return Self { shape, seed, bytes };
            }
            tries += 1;
        }
    }
}

/// The initial seed depends on all keys. If it were known beforehand, an attacker could have pages archived whose keys
/// share all their slots under it, and under any number of further seeds.
fn first_seed(hashes: &[u64]) -> u32 {
    let digest = hashes.iter().fold(0, |digest, hash| mix(digest ^ hash, 1));
    // Either half of the hash works.
    #[allow(clippy::cast_possible_truncation)]
    let seed = digest as u32;
    seed
}

/// Peels off keys one by one.
#[derive(Debug, Default)]
struct Peeler {
    /// For each slot, the number of its keys times four, combined by XOR with their slot numbers.
    counts: Vec<u8>,
    /// For each slot, the XOR of the mixed hashes of its keys: the hash itself if one key is left.
    mixed: Vec<u64>,
    /// Slots with one key.
    single: Vec<u32>,
    /// The peeled keys in order: the mixed hash, and the slot number in which it was alone.
    taken: Vec<(u64, u8)>,
}

impl Peeler {
    /// Returns whether all keys could be peeled off.
    fn peel(&mut self, hashes: &[u64], shape: FuseShape, seed: u32) -> bool {
        self.counts.clear();
        self.counts.resize(shape.slots(), 0);
        self.mixed.clear();
        self.mixed.resize(shape.slots(), 0);
        self.taken.clear();
        let mut crowded = false;
        for &hash in hashes {
            let key_slots = KeySlots::of(mix(hash, seed), shape);
            for (which, slot) in (0..).zip(key_slots.slots) {
                let count = &mut self.counts[slot as usize];
                // More than 63 keys per slot do not fit, and do not occur.
                crowded |= *count >= 252;
                *count = count.wrapping_add(4) ^ which;
                self.mixed[slot as usize] ^= key_slots.mixed;
            }
        }
        if crowded {
            return false;
        }
        for start in 0..self.counts.len() {
            // From left to right, so that peeled keys stay in the processor's cache.
            self.single.push(u32::try_from(start).unwrap_or(u32::MAX));
            while let Some(slot) = self.single.pop() {
                let slot = slot as usize;
                if self.counts[slot] >> 2 != 1 {
                    continue;
                }
                let (which, mixed) = (self.counts[slot] & 3, self.mixed[slot]);
                self.taken.push((mixed, which));
                for (other, place) in (0..).zip(KeySlots::of(mixed, shape).slots) {
                    let count = &mut self.counts[place as usize];
                    *count = (*count - 4) ^ other;
                    self.mixed[place as usize] ^= mixed;
                    if *count >> 2 == 1 {
                        self.single.push(place);
                    }
                }
            }
        }
        self.taken.len() == hashes.len()
    }

    /// The fingerprint of each slot. Keys peeled last are assigned first, so that no later key changes their slots.
    fn fingerprints(&self, shape: FuseShape, bits: u8) -> Vec<u16> {
        let mut prints = vec![0; shape.slots()];
        for &(mixed, which) in self.taken.iter().rev() {
            let key_slots = KeySlots::of(mixed, shape);
            // The slot itself is still 0.
            let print = key_slots
                .slots
                .iter()
                .fold(key_slots.fingerprint(bits), |print, &slot| {
                    print ^ prints[slot as usize]
                });
            prints[key_slots.slots[usize::from(which)] as usize] = print;
        }
        prints
    }
}

/// Packs fingerprints consecutively, the lowest bit first.
fn pack(prints: &[u16], shape: FuseShape, bits: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(shape.bytes(bits));
    let (mut pending, mut count) = (0u64, 0u32);
    for &print in prints {
        pending |= u64::from(print) << count;
        count += u32::from(bits);
        if count >= 32 {
            bytes.extend_from_slice(&pending.to_le_bytes()[..4]);
            pending >>= 32;
            count -= 32;
        }
    }
    bytes.extend_from_slice(&pending.to_le_bytes()[..count.div_ceil(8) as usize]);
    bytes.resize(shape.bytes(bits), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::hash::xxh64;
    use super::*;

    fn hashes(count: usize, salt: u64) -> Vec<u64> {
        let mut hashes: Vec<u64> = (0..count as u64)
            .map(|i| xxh64(&[i.to_le_bytes(), salt.to_le_bytes()].concat()))
            .collect();
        hashes.sort_unstable();
        hashes
    }

    #[test]
    fn inserted_keys_are_contained_for_every_width() {
        for count in [0, 1, 2, 3, 4, 5, 10, 41, 100, 355, 1_036, 3_100, 10_000] {
            let hashes = hashes(count, 1);
            for bits in 1..=16 {
                let fuse = Fuse::of(&hashes, bits);
                assert_eq!(fuse.bytes.len(), fuse.shape.bytes(bits));
                let is_in = |&hash: &u64| has(&fuse.bytes, fuse.shape, fuse.seed, bits, hash);
                assert!(hashes.iter().all(is_in), "{count} {bits}");
            }
        }
    }

    #[test]
    fn other_keys_match_at_the_expected_rate() {
        let fuse = |bits| Fuse::of(&hashes(20_000, 1), bits);
        let others = hashes(200_000, 2);
        for bits in [1, 3, 8] {
            let fuse = fuse(bits);
            let is_in = |&&hash: &&u64| has(&fuse.bytes, fuse.shape, fuse.seed, bits, hash);
            let found = others.iter().filter(is_in).count();
            let expected = others.len() >> bits;
            // More than six standard deviations.
            assert!(
                found.abs_diff(expected) < 7 * expected.isqrt(),
                "{bits} {found}"
            );
        }
    }

    #[test]
    fn size_stays_within_the_documented_bound() {
        for keys in (0..3000).chain((3000..300_000).step_by(17)) {
            let shape = FuseShape::of(keys, 0);
            assert!(shape.is_sound());
            for bits in 1..=16 {
                // A kilobyte; header, entry and checksum take less than 300 bytes.
                let most = keys * 12 * usize::from(bits) / 80 + 724;
                assert!(shape.bytes(bits) <= most, "{keys} {bits}");
            }
        }
    }

    #[test]
    fn few_seeds_are_needed() {
        for count in [3, 41, 122, 200, 400, 1_100, 2_000, 3_100, 8_000, 26_000] {
            for salt in 0..20 {
                let hashes = hashes(count, salt);
                let tries = Fuse::of(&hashes, 8).seed.wrapping_sub(first_seed(&hashes));
                assert!(tries < SEEDS_A_SIZE, "{count}");
            }
        }
        // If all seeds had failed, there would be more slots.
        assert!(FuseShape::of(1_000, 1).slots() > FuseShape::of(1_000, 0).slots());
    }
}
