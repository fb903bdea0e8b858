//! Codes any bytes as rows of a vault, with any numbers: the original rows, or an error; forged signatures are
//! rejected.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::vault::{decode, encode, is_signed, public_key, sign, spare_bytes};

fuzz_target!(|data: &[u8]| {
    let Some((numbers, rest)) = data.split_at_checked(8) else {
        return;
    };
    let numbers: Vec<usize> = numbers.iter().map(|&byte| usize::from(byte)).collect();
    // Verbatim: mostly an error.
    let indices: Vec<usize> = rest
        .iter()
        .take(numbers[0] % 9)
        .map(|&byte| usize::from(byte))
        .collect();
    let mut made = vec![0; rest.len()];
    let _ = decode(rest, &indices, numbers[1], numbers[2], &mut made);
    // A code of some rows, of which any sufficient subset restores all.
    let (needed, spare, units) = (1 + numbers[3] % 6, numbers[4] % 6, 1 + numbers[5] % 3);
    let count = needed + spare;
    let mut rows = vec![0; needed * units * 64];
    for (place, byte) in rows.iter_mut().zip(rest.iter().cycle()) {
        *place = *byte;
    }
    let mut spares = vec![0; spare_bytes(&rows, needed, count).expect("a code")];
    encode(&rows, needed, count, &mut spares).expect("a code");
    let all = [rows.as_slice(), &spares].concat();
    let width = units * 64;
    let from = numbers[6] % count;
    let chosen: Vec<usize> = (0..needed).map(|step| (from + step) % count).collect();
    let provided: Vec<u8> = chosen
        .iter()
        .flat_map(|&row| all[row * width..][..width].to_vec())
        .collect();
    let mut back = vec![0; provided.len()];
    decode(&provided, &chosen, needed, count, &mut back).expect("as many as are needed");
    assert_eq!(back, rows);

    // A zero key is invalid: it is rejected where keys are read.
    let mut seed = [1; 32];
    seed[0] = data[7];
    let (public, mut signature) = (public_key(seed), sign(seed, rest));
    assert!(is_signed(public, rest, signature));
    signature[numbers[0] % 64] ^= 1 << (numbers[1] % 8);
    assert!(!is_signed(public, rest, signature));
    if let Some(forged) = rest.first_chunk::<96>() {
        let (key, signature) = forged.split_at(32);
        let (Ok(key), Ok(signature)) = (key.try_into(), signature.try_into()) else {
            return;
        };
        let _ = is_signed(key, rest, signature);
    }
});
