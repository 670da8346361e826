//! The sum of version 1, for old manifests: SHA-256 digests added modulo 2^256.
//!
//! Sets with the same sum can be made in minutes (Wagner 2002), so this does not protect against deliberate
//! changes.

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use crate::batch::{COLUMNS, Values, canonical};

const TITLE: &[u8] = b"trayscan set digest 1\0";

#[derive(Default)]
pub(super) struct AdditiveSum([u8; 32]);

impl AdditiveSum {
    /// Adds a batch, whose canonical form is built in `form`; returns the first bytes of its hash.
    pub(super) fn add(&mut self, batch: &dyn Values, columns: &[usize], form: &mut Vec<u8>) -> u64 {
        for &column in columns {
            form.extend_from_slice(COLUMNS[column].name.as_bytes());
            let value = batch.plain(column);
            let value = value.map(|text| canonical(COLUMNS[column].kind, text));
            match value.filter(|text| !text.is_empty()) {
                None => form.extend_from_slice(&[0, 0]),
                Some(text) => {
                    form.extend_from_slice(&[0, 1]);
                    form.extend_from_slice(&(text.len() as u64).to_be_bytes());
                    form.extend_from_slice(text.as_bytes());
                }
            }
        }
        let hash = sha256(form);
        add_numbers(&mut self.0, &hash);
        hash.first_chunk()
            .map_or(0, |first| u64::from_be_bytes(*first))
    }

    /// Adds the batches of another sum.
    pub(super) fn merge(&mut self, other: &Self) {
        add_numbers(&mut self.0, &other.0);
    }

    pub(super) fn finish(&self, columns: &[usize], count: u64) -> [u8; 32] {
        let mut form = TITLE.to_vec();
        for &column in columns {
            form.extend_from_slice(COLUMNS[column].name.as_bytes());
            form.push(0);
        }
        form.extend_from_slice(&count.to_be_bytes());
        form.extend_from_slice(&self.0);
        sha256(&form)
    }
}

fn sha256(bytes: &[u8]) -> [u8; SHA256_OUTPUT_LEN] {
    let hash = digest(&SHA256, bytes);
    hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Adds big-endian numbers modulo 2^256.
fn add_numbers(sum: &mut [u8; 32], number: &[u8; 32]) {
    let mut carry = 0;
    for (digit, more) in sum.iter_mut().zip(number).rev() {
        let added = u16::from(*digit) + u16::from(*more) + carry;
        [_, *digit] = added.to_be_bytes();
        carry = added >> 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_carry_and_wrap() {
        let mut sum = [0xff; 32];
        let mut one = [0; 32];
        one[31] = 1;
        add_numbers(&mut sum, &one);
        assert_eq!(sum, [0; 32]);
        add_numbers(&mut sum, &[0x80; 32]);
        add_numbers(&mut sum, &[0x80; 32]);
        let mut expected = [1; 32];
        expected[31] = 0;
        assert_eq!(sum, expected);
    }
}
