//! Properties that hold for every input, checked by `cargo fuzz` and by tests.
//!
//! Each target takes any bytes and panics if a property does not hold. `fuzz/fuzz_targets` has one program per
//! target; the tests here run all targets with the inputs in `fuzz/corpus` and with random changes of them. This
//! module is part of no other build.

// One file per kind of input.
mod json;
mod readers;
mod text;

pub use json::{batch, split};
pub use readers::{csv, parquet, xlsx};
pub use text::{condition, date, template};

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use fastrand::Rng;

    /// The folder of seeds; `None` in a published crate, which has none.
    fn corpus() -> Option<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
        folder.is_dir().then(|| folder.join("corpus"))
    }

    pub(super) fn seed(name: &str) -> Option<Vec<u8>> {
        Some(fs::read(corpus()?.join(name)).expect("a seed"))
    }

    /// Runs `target` with its seeds, and with `rounds` random changes of them.
    fn run(name: &str, target: fn(&[u8]), rounds: u32) {
        let mut seeds = vec![Vec::new()];
        if let Some(corpus) = corpus() {
            let files = fs::read_dir(corpus.join(name)).expect("a folder of seeds");
            let mut files: Vec<PathBuf> =
                files.map(|entry| entry.expect("a seed").path()).collect();
            files.sort();
            seeds.extend(files.iter().map(|file| fs::read(file).expect("a seed")));
            assert!(seeds.len() > 3, "too few seeds for {name}");
        }
        let check = |input: &[u8], what: &str| {
            let result = std::panic::catch_unwind(|| target(input));
            assert!(
                result.is_ok(),
                "{name}, {what}: {:?}",
                input.escape_ascii().to_string()
            );
        };
        for (number, seed) in seeds.iter().enumerate() {
            check(seed, &format!("seed {number}"));
        }
        let mut rng = Rng::with_seed(7);
        for round in 0..rounds {
            check(&mutate(&seeds, &mut rng), &format!("round {round}"));
        }
    }

    /// Changes a seed in a few places, as libFuzzer does.
    fn mutate(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
        let seed = |rng: &mut Rng| seeds[rng.usize(..seeds.len())].clone();
        let mut input = seed(rng);
        for _ in 0..rng.usize(1..5) {
            let from = rng.usize(..=input.len());
            let to = (from + rng.usize(..9)).min(input.len());
            match rng.u8(..6) {
                0 => drop(input.drain(from..to)),
                1 => input.insert(from, rng.u8(..)),
                2 => input.insert(from, *rng.choice(b"\"\\{}[],:;=~.0\n").unwrap_or(&0)),
                3 => input.truncate(from.max(input.len() / 2)),
                4 => {
                    let piece = input[from..to].to_vec();
                    let at = rng.usize(..=input.len());
                    input.splice(at..at, piece);
                }
                _ => {
                    let other = seed(rng);
                    let start = rng.usize(..=other.len());
                    let end = (start + rng.usize(..40)).min(other.len());
                    input.splice(from..to, other[start..end].iter().copied());
                }
            }
        }
        input
    }

    /// One test per target, so that they run in parallel.
    macro_rules! targets {
        ($($name:ident: $rounds:expr),+ $(,)?) => {
            $(#[test]
            fn $name() {
                run(stringify!($name), super::$name, $rounds);
            })+
        };
    }

    targets! {
        split: 1500,
        batch: 2500,
        date: 4000,
        condition: 10_000,
        template: 2500,
        csv: 100,
        xlsx: 500,
        parquet: 2500,
    }
}
