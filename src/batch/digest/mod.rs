//! The set digest: one hash over the batches of an export, independent of their order and format.
//!
//! Each batch has a canonical form (`batch::Values`). Version 2 hashes it with BLAKE3 to 2048 bytes and adds
//! these up as 1024 numbers of 16 bits (LtHash, see [`lattice`]); version 1 added SHA-256 digests, which can be
//! forged, and is only computed to read old manifests. Unknown fields have a digest of their own, because
//! not every format keeps them. `trayscan-manifest(5)` is the specification.

// The sums of version 2 and of version 1.
mod lattice;
mod v1;

mod set;

pub(crate) use set::{BatchHash, DigestState, SetDigest, VERSION, hexadecimal, no_unknown_fields};
