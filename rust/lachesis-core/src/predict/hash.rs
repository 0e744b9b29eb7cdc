//! Words of a text, and their hash.
//!
//! A word is a longest run of characters that Unicode calls alphabetic or numeric, lower-cased; everything else separates.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a with 64 bits (Fowler, Noll and Vo): for each byte, h = (h xor byte) × 1099511628211, from 14695981039346656037.
///
/// # Example
///
/// ```
/// # use lachesis_core::predict::fnv1a_64;
/// assert_eq!(fnv1a_64(b""), 0xcbf2_9ce4_8422_2325);
/// assert_eq!(fnv1a_64(b"a"), 0xaf63_dc4c_8601_ec8c);
/// ```
#[must_use]
pub fn fnv1a_64(bytes: &[u8]) -> u64 {
    extend(OFFSET, bytes)
}

fn extend(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| step(hash, byte))
}

const fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(PRIME)
}

/// The hash of `name` in a namespace: the namespace's byte goes first.
pub(super) fn hash_in(namespace: u8, name: &str) -> u64 {
    extend(step(OFFSET, namespace), name.as_bytes())
}

/// Calls `found` with the hash of each word of `text` in a namespace, in the order of the text.
///
/// Nothing is copied: bytes enter the hash as they are read.
pub(super) fn for_each_word(namespace: u8, text: &str, mut found: impl FnMut(u64)) {
    let start = step(OFFSET, namespace);
    let mut hash = start;
    let mut inside = false;
    for character in text.chars() {
        if character.is_ascii() {
            let byte = u8::try_from(character).unwrap_or(b' ');
            if byte.is_ascii_alphanumeric() {
                hash = step(hash, byte.to_ascii_lowercase());
                inside = true;
                continue;
            }
        } else if character.is_alphanumeric() {
            let mut bytes = [0; 4];
            for lower in character.to_lowercase() {
                hash = extend(hash, lower.encode_utf8(&mut bytes).as_bytes());
            }
            inside = true;
            continue;
        }
        if inside {
            found(hash);
            hash = start;
            inside = false;
        }
    }
    if inside {
        found(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<u64> {
        let mut all = Vec::new();
        for_each_word(b'w', text, |hash| all.push(hash));
        all
    }

    #[test]
    fn published_values_of_the_hash() {
        // From the FNV authors' list of test vectors.
        assert_eq!(fnv1a_64(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(fnv1a_64(b"b"), 0xaf63_df4c_8601_f1a5);
    }

    #[test]
    fn words_are_lower_cased_runs_of_letters_and_digits() {
        let expected: Vec<u64> =
            ["read", "the", "file_2"].iter().flat_map(|word| words(&word.replace('_', " "))).collect();
        assert_eq!(words("  Read: THE file_2!"), expected);
        assert_eq!(words("ok"), [fnv1a_64(b"wok")]);
        assert_eq!(words("ÄÖ é"), [fnv1a_64("wäö".as_bytes()), fnv1a_64("wé".as_bytes())]);
        assert!(words(" …—\n").is_empty());
    }

    #[test]
    fn a_word_differs_between_namespaces() {
        assert_ne!(hash_in(b'i', "read"), hash_in(b'c', "read"));
        assert_eq!(hash_in(b'w', "read"), words("read")[0]);
    }
}
