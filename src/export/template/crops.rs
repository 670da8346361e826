//! The names of crops in file names: safe on every file system, and one for each crop.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Placeholder, Template};
use crate::storage::cloud::ObjectAddress;
use crate::storage::path::existing_folder;
use crate::text;

/// The maximum length of a value in a name, in bytes: file systems allow 255 in total.
const LONGEST: usize = 120;

/// The names of crops in file names. Each crop has one name, which is unique on the disk.
#[derive(Clone)]
pub(crate) struct Crops {
    names: HashMap<String, String>,
    /// In lower case.
    taken: HashSet<String>,
    /// The names of the missing value, in lower case.
    reserved: Vec<String>,
    folder: PathBuf,
    /// Whether the files are on a disk that ignores case, once it matters.
    ignores_case: OnceCell<bool>,
}

impl Crops {
    /// Starts without names for the files of `template`.
    pub(crate) fn new(template: &Template) -> Self {
        // Always reserved, so that a crop has the same name in every run.
        let null = |index| template.null(index).to_lowercase();
        let crops = template.parts.iter().enumerate();
        let crops = crops.filter(|(_, (value, _))| *value == Placeholder::CropType);
        let reserved: Vec<String> = crops.map(|(index, _)| null(index)).collect();
        Self {
            names: HashMap::new(),
            taken: reserved.iter().cloned().collect(),
            reserved,
            folder: template.folder(),
            ignores_case: OnceCell::new(),
        }
    }

    /// Like [`Crops::new`], on a disk that ignores case or not.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn on_disk(template: &Template, ignores_case: bool) -> Self {
        Self {
            ignores_case: OnceCell::from(ignores_case),
            ..Self::new(template)
        }
    }

    /// Returns whether another crop has this name.
    fn is_taken(&self, name: &str) -> bool {
        let lower = name.to_lowercase();
        let is_other = || {
            self.reserved.contains(&lower)
                || self.names.values().any(|other| other == name)
                || *self.ignores_case.get_or_init(|| ignores_case(&self.folder))
        };
        self.taken.contains(&lower) && is_other()
    }

    /// Continues with existing names.
    pub(crate) fn resume(template: &Template, names: &BTreeMap<String, String>) -> Self {
        let mut crops = Self::new(template);
        for (crop, name) in names {
            crops.taken.insert(name.to_lowercase());
            crops.names.insert(crop.clone(), name.clone());
        }
        crops
    }

    /// Returns the crops whose names have a mark, with these names.
    pub(in crate::export) fn marked(&self) -> Vec<(&str, &str)> {
        let names = self.names.iter();
        let marked = names.filter(|(_, name)| mark_of(name).is_some());
        let mut marked: Vec<(&str, &str)> = marked.map(|(crop, name)| (&**crop, &**name)).collect();
        marked.sort_unstable();
        marked
    }

    /// Returns the names of all crops so far.
    pub(crate) fn names(&self) -> BTreeMap<String, String> {
        let names = self.names.iter();
        names
            .map(|(crop, name)| (crop.clone(), name.clone()))
            .collect()
    }

    /// Returns the name of `crop`. If several would have the same name, the first keeps it.
    pub(super) fn name(&mut self, crop: &str) -> &str {
        if !self.names.contains_key(crop) {
            let plain = safe(crop).into_owned();
            let mut name = plain.clone();
            let mut attempt = 0;
            while self.is_taken(&name) {
                name = marked(&plain, crop, attempt);
                attempt += 1;
            }
            self.taken.insert(name.to_lowercase());
            self.names.insert(crop.to_owned(), name);
        }
        &self.names[crop]
    }
}

/// Returns whether `folder`, or the nearest parent that exists, is on a disk that ignores case. If nothing can be written there,
/// it may be.
fn ignores_case(folder: &Path) -> bool {
    if matches!(ObjectAddress::parse(&folder.join("a")), Ok(Some(_))) {
        return false;
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".trayscan-").rand_bytes(12).suffix(".tmp");
    let probe = existing_folder(folder).and_then(|folder| builder.tempfile_in(folder));
    probe.map_or(true, |probe| {
        let name = probe.path().file_name().unwrap_or_default();
        let upper = name.to_string_lossy().to_uppercase();
        probe.path().with_file_name(upper).exists()
    })
}

/// Encodes `value` as a file name that is valid and unambiguous on any system. Other characters are written
/// as `%` and the hexadecimal bytes, like Hive does in folder names.
pub(super) fn safe(value: &str) -> Cow<'_, str> {
    // Some file systems treat a letter with a combining accent like the precomposed letter.
    let is_accent = |character: char| matches!(character, '\u{300}'..='\u{36f}');
    let is_plain = |character: char| {
        !character.is_control()
            && !is_accent(character)
            && !text::is_invisible(character)
            && !"/\\:*?\"<>|%={}".contains(character)
    };
    let is_reserved = is_reserved(value);
    // Other programs take a leading hyphen for a flag, and engines skip names with a leading underscore.
    let is_awkward = value.starts_with(['.', ' ', '-', '_']) || value.ends_with(['.', ' ']);
    let mark = mark_of(value);
    let is_safe = !is_awkward && !is_reserved && mark.is_none();
    if value.chars().all(is_plain) && is_safe && value.len() <= LONGEST {
        return Cow::Borrowed(value);
    }
    let last = value.chars().count().saturating_sub(1);
    let mut name = String::new();
    let mut bytes = [0; 4];
    for (index, (at, character)) in value.char_indices().enumerate() {
        let at_an_end = (index == 0 || index == last) && matches!(character, '.' | ' ');
        let is_special = index == 0 && matches!(character, '-' | '_');
        let must_go = at_an_end || is_special || (is_reserved && index == 0) || mark == Some(at);
        if is_plain(character) && !must_go {
            name.push(character);
            continue;
        }
        for byte in character.encode_utf8(&mut bytes).bytes() {
            // Writing to a string cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    if name.len() > LONGEST {
        // Keeps long values with the same beginning distinct.
        return Cow::Owned(marked(&name, value, 0));
    }
    Cow::Owned(name)
}

/// Returns whether `value` is a device name on Windows, with any extension.
fn is_reserved(value: &str) -> bool {
    let stem = value.split('.').next().unwrap_or_default();
    let stem = stem.trim_end_matches(' ').to_ascii_uppercase();
    let is_numbered = |device: &str| {
        let number = stem.strip_prefix(device).map(|number| number.chars());
        let mut number = number.into_iter().flatten();
        matches!(number.next(), Some('1'..='9' | '¹' | '²' | '³')) && number.next().is_none()
    };
    let devices = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
    devices.contains(&stem.as_str()) || is_numbered("COM") || is_numbered("LPT")
}

/// The length of a mark after its tilde, in hexadecimal digits.
const MARK_DIGITS: usize = 16;

/// Returns `name`, shortened if needed, with a mark: a hash of `value`. Each attempt produces another mark.
pub(super) fn marked(name: &str, value: &str, attempt: u64) -> String {
    let hash = xxhash_rust::xxh3::xxh3_64_with_seed(value.as_bytes(), attempt);
    let mark = format!("~{hash:0MARK_DIGITS$x}");
    // A long name has a mark already.
    let name = mark_of(name).map_or(name, |at| &name[..at]);
    let end = (0..=name.len().min(LONGEST - mark.len()))
        .rev()
        .find(|end| name.is_char_boundary(*end));
    format!("{}{mark}", &name[..end.unwrap_or(0)])
}

/// Returns the position of the mark at the end of `name`. Only trayscan adds marks: a tilde in a value is
/// escaped, so no crop can have the name of another one with its mark.
pub(super) fn mark_of(name: &str) -> Option<usize> {
    let at = name.len().checked_sub(MARK_DIGITS + 1)?;
    let digits = name.get(at..)?.strip_prefix('~')?;
    let is_mark = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_mark.then_some(at)
}
