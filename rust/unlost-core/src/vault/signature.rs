//! Ed25519 (RFC 8032).

use ed25519_compact::{KeyPair, PublicKey, Seed, Signature};

/// The public key of a secret one, which is 32 random bytes.
#[must_use]
pub fn public_key(seed: [u8; 32]) -> [u8; 32] {
    *KeyPair::from_seed(Seed::new(seed)).pk
}

/// The signature of a message. Deterministic.
#[must_use]
pub fn sign(seed: [u8; 32], message: &[u8]) -> [u8; 64] {
    *KeyPair::from_seed(Seed::new(seed)).sk.sign(message, None)
}

/// Whether a message was signed with the secret key of `public_key`.
#[must_use]
pub fn is_signed(public_key: [u8; 32], message: &[u8], signature: [u8; 64]) -> bool {
    PublicKey::new(public_key)
        .verify(message, &Signature::new(signature))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_matches_rfc_8032() {
        // RFC 8032, section 7.1, test 2.
        let hex = |text: &str| -> Vec<u8> {
            (0..text.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
                .collect()
        };
        let seed = hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let public = hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
        let signature = hex(concat!(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da",
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ));
        let seed: [u8; 32] = seed.try_into().unwrap();
        assert_eq!(public_key(seed).to_vec(), public);
        assert_eq!(sign(seed, &[0x72]).to_vec(), signature);
        let public: [u8; 32] = public.try_into().unwrap();
        let mut signature: [u8; 64] = signature.try_into().unwrap();
        assert!(is_signed(public, &[0x72], signature));
        assert!(!is_signed(public, &[0x73], signature));
        signature[5] ^= 1;
        assert!(!is_signed(public, &[0x72], signature));
    }
}
