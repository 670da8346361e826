//! The set digest, implemented only from its specification in `trayscan-manifest(5)`, including BLAKE3
//! and the sums. It shares no code with the program.

use serde_json::Value;

use crate::data::hex;

const IV: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];
const CHUNK_START: u32 = 1;
const CHUNK_END: u32 = 2;
const PARENT: u32 = 4;
const ROOT: u32 = 8;
const DERIVE_KEY_CONTEXT: u32 = 32;
const DERIVE_KEY_MATERIAL: u32 = 64;

/// A node of the tree before its last compression.
struct Node {
    key: [u32; 8],
    block: [u8; 64],
    length: u32,
    counter: u64,
    flags: u32,
}

impl Node {
    fn chaining_value(&self) -> [u32; 8] {
        let output = compress(
            &self.key,
            &self.block,
            self.counter,
            self.length,
            self.flags,
        );
        output[..8].try_into().unwrap()
    }

    fn output(&self, size: usize) -> Vec<u8> {
        let block = |counter| {
            let words = compress(
                &self.key,
                &self.block,
                counter,
                self.length,
                self.flags | ROOT,
            );
            words.map(u32::to_le_bytes).concat()
        };
        let blocks = (0..).map(block).take(size.div_ceil(64));
        let mut bytes = blocks.collect::<Vec<_>>().concat();
        bytes.truncate(size);
        bytes
    }
}

fn compress(key: &[u32; 8], block: &[u8; 64], counter: u64, length: u32, flags: u32) -> [u32; 16] {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(block.chunks(4)) {
        *word = u32::from_le_bytes(bytes.try_into().unwrap());
    }
    let low = u32::try_from(counter & 0xffff_ffff).unwrap();
    let high = u32::try_from(counter >> 32).unwrap();
    let mut state = [0; 16];
    state[..8].copy_from_slice(key);
    state[8..12].copy_from_slice(&IV[..4]);
    state[12..].copy_from_slice(&[low, high, length, flags]);
    for _ in 0..7 {
        for (place, [a, b, c, d]) in [
            [0, 4, 8, 12],
            [1, 5, 9, 13],
            [2, 6, 10, 14],
            [3, 7, 11, 15],
            [0, 5, 10, 15],
            [1, 6, 11, 12],
            [2, 7, 8, 13],
            [3, 4, 9, 14],
        ]
        .into_iter()
        .enumerate()
        {
            for (word, turns) in [(words[2 * place], [16, 12]), (words[2 * place + 1], [8, 7])] {
                state[a] = state[a].wrapping_add(state[b]).wrapping_add(word);
                state[d] = (state[d] ^ state[a]).rotate_right(turns[0]);
                state[c] = state[c].wrapping_add(state[d]);
                state[b] = (state[b] ^ state[c]).rotate_right(turns[1]);
            }
        }
        words =
            [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8].map(|from: usize| words[from]);
    }
    for place in 0..8 {
        state[place] ^= state[place + 8];
        state[place + 8] ^= key[place];
    }
    state
}

fn tree(input: &[u8], key: [u32; 8], counter: u64, flags: u32) -> Node {
    if input.len() > 1024 {
        let chunks = input.len().div_ceil(1024);
        let left = 1024 * (chunks.next_power_of_two() / 2);
        let (left, right) = (
            tree(&input[..left], key, counter, flags),
            tree(&input[left..], key, counter + (left / 1024) as u64, flags),
        );
        let values = [left.chaining_value(), right.chaining_value()].concat();
        let bytes: Vec<u8> = values.into_iter().flat_map(u32::to_le_bytes).collect();
        return Node {
            key,
            block: bytes.try_into().unwrap(),
            length: 64,
            counter: 0,
            flags: flags | PARENT,
        };
    }
    let count = input.len().div_ceil(64).max(1);
    let mut value = key;
    for number in 0..count {
        let part = &input[64 * number..input.len().min(64 * number + 64)];
        let mut block = [0; 64];
        block[..part.len()].copy_from_slice(part);
        let start = if number == 0 { CHUNK_START } else { 0 };
        let end = if number + 1 == count { CHUNK_END } else { 0 };
        let length = u32::try_from(part.len()).unwrap();
        let node = Node {
            key: value,
            block,
            length,
            counter,
            flags: flags | start | end,
        };
        if number + 1 == count {
            return node;
        }
        value = node.chaining_value();
    }
    unreachable!("the last block returns");
}

/// BLAKE3 in key derivation mode.
fn blake3(context: &str, input: &[u8], size: usize) -> Vec<u8> {
    let key = tree(context.as_bytes(), IV, 0, DERIVE_KEY_CONTEXT).output(32);
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().zip(key.chunks(4)) {
        *word = u32::from_le_bytes(bytes.try_into().unwrap());
    }
    tree(input, words, 0, DERIVE_KEY_MATERIAL).output(size)
}

fn number(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    match fraction.trim_end_matches('0') {
        "" if whole == "0" => "0".to_owned(),
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

fn date(text: &str) -> String {
    let Some((whole, fraction)) = text.split_once('.') else {
        return text.to_owned();
    };
    let digits = fraction.trim_end_matches('Z').trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{whole}{point}{digits}Z")
}

/// Sums of 1024 lanes.
fn sum(context: &str, forms: &[Vec<u8>]) -> Vec<u8> {
    let mut lanes = [0_u16; 1024];
    for form in forms {
        let hash = blake3(context, form, 2048);
        for (lane, bytes) in lanes.iter_mut().zip(hash.chunks(2)) {
            *lane = lane.wrapping_add(u16::from_le_bytes(bytes.try_into().unwrap()));
        }
    }
    lanes.map(u16::to_le_bytes).concat()
}

/// The set digest of well-formed batches over the fields `names`, in hexadecimal.
pub(crate) fn set_digest(batches: &[Value], names: &[&str]) -> String {
    let form = |batch: &Value| {
        let mut form = Vec::new();
        for name in names {
            let text = match &batch[*name] {
                Value::Null => String::new(),
                Value::String(text) if name.starts_with("avg_") => number(text),
                Value::String(text) if *name == "batch_creation_date" => date(text),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            form.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
            form.extend_from_slice(text.as_bytes());
        }
        form
    };
    let forms: Vec<Vec<u8>> = batches.iter().map(form).collect();
    let mut whole = Vec::new();
    for name in names {
        whole.extend_from_slice(name.as_bytes());
        whole.push(0);
    }
    whole.extend_from_slice(&(batches.len() as u64).to_le_bytes());
    whole.extend_from_slice(&sum("trayscan set digest 2: batch", &forms));
    hex(&blake3("trayscan set digest 2: set", &whole, 32))
}

/// The digest of unknown fields, given as IDs and the canonical JSON of the unknown fields.
pub(crate) fn unknown_fields_digest(fields: &[(&str, &str)]) -> String {
    let form = |(id, json): &(&str, &str)| {
        let mut form = u32::try_from(id.len()).unwrap().to_le_bytes().to_vec();
        form.extend_from_slice(id.as_bytes());
        form.extend_from_slice(json.as_bytes());
        form
    };
    let forms: Vec<Vec<u8>> = fields.iter().map(form).collect();
    let mut whole = (fields.len() as u64).to_le_bytes().to_vec();
    whole.extend_from_slice(&sum(
        "trayscan set digest 2: unknown fields of a batch",
        &forms,
    ));
    hex(&blake3(
        "trayscan set digest 2: unknown fields of a set",
        &whole,
        32,
    ))
}

#[test]
fn blake3_matches_the_official_test_vectors() {
    // From the official test vectors: input 0, 1, …, 250, 0, 1, … of these lengths.
    let context = "BLAKE3 2019-12-27 16:29:52 test vectors context";
    for (length, start) in [
        (
            0,
            "2cc39783c223154fea8dfb7c1b1660f2ac2dcbd1c1de8277b0b0dd39b7e50d7d",
        ),
        (
            1,
            "b3e2e340a117a499c6cf2398a19ee0d29cca2bb7404c73063382693bf66cb06c",
        ),
        (
            1025,
            "effaa245f065fbf82ac186839a249707c3bddf6d3fdda22d1b95a3c970379bcb",
        ),
    ] {
        let input: Vec<u8> = (0..length)
            .map(|number| u8::try_from(number % 251).unwrap())
            .collect();
        assert_eq!(hex(&blake3(context, &input, 32)), start, "{length}");
    }
}
