//! Finds the files of a lake, which is a folder or a template such as `lake/year={year}/batches.parquet`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::error::{Failure, Kind};
use crate::export::Template;
use crate::formats::detect;
use crate::storage::Storage;
use crate::storage::cloud::ObjectAddress;
use crate::text;

/// The extensions of exports, before `.gz` or `.zst`.
const EXTENSIONS: [&str; 9] = [
    "json", "ndjson", "jsonl", "csv", "tsv", "xlsx", "parquet", "sqlite", "db",
];

/// The manifest of a lake.
const MANIFEST: &str = "_manifest.json";

/// The location of a lake.
#[derive(Clone, Debug)]
pub(crate) struct Lake {
    /// The folder, or the one before the first placeholder.
    pub(crate) folder: PathBuf,
    /// `None` for a folder.
    template: Option<Template>,
}

impl Lake {
    /// Returns the lake at `path`; `None` if it is a file or does not exist. In object storage, a name without an extension is
    /// that of a folder.
    pub(crate) fn find(path: &Path) -> Result<Option<Self>, Failure> {
        let folder = || Self {
            folder: path.to_owned(),
            template: None,
        };
        if ObjectAddress::is_meant(path) && Template::parse(path)?.is_none() {
            let text = path.to_string_lossy();
            let mut parts = text.rsplit('/');
            let is_object = parts.next().is_some_and(|last| last.contains('.'));
            return Ok((!is_object).then(folder));
        }
        if path.exists() {
            return Ok(path.is_dir().then(folder));
        }
        // Names are compared as text.
        let template = Template::parse(path.strip_prefix(".").unwrap_or(path))?;
        Ok(template.map(|template| Self {
            folder: template.folder(),
            template: Some(template),
        }))
    }

    /// Returns its manifest, if there is one in its folder.
    pub(crate) fn manifest(&self, storage: &Storage) -> Result<Option<PathBuf>, Failure> {
        let manifest = self.folder.join(MANIFEST);
        let exists = match ObjectAddress::parse(&manifest)? {
            Some(address) => {
                let sizes = storage.cloud.sizes(&address)?;
                sizes.contains_key(&address.to_string())
            }
            None => manifest.exists(),
        };
        Ok(exists.then_some(manifest))
    }

    /// Returns the exports in it, sorted by name. Names that start with `_` or `.` are skipped, as query engines
    /// do.
    pub(crate) fn files(&self, storage: &Storage) -> Result<Vec<PathBuf>, Failure> {
        Ok(self.walk(storage)?.files)
    }

    /// Returns the exports in it, and fails if a folder has two paths: query engines would read its files twice.
    pub(crate) fn distinct_files(&self, storage: &Storage) -> Result<Vec<PathBuf>, Failure> {
        let walk = self.walk(storage)?;
        self.check_repeated(&walk.repeated, &walk.files)?;
        Ok(walk.files)
    }

    fn root(&self) -> &Path {
        match &self.folder {
            folder if folder.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        }
    }

    fn walk(&self, storage: &Storage) -> Result<FolderWalk, Failure> {
        let root = self.root();
        let mut walk = FolderWalk::default();
        match ObjectAddress::parse(&root.join(MANIFEST))? {
            Some(inside) => walk.files = objects(root, &inside, storage)?,
            // An export without batches creates no folder.
            None if self.template.is_some() && !root.exists() => {}
            None => walk.enter(root)?,
        }
        let mut files: Vec<PathBuf> = walk
            .files
            .iter()
            .map(|file| plain(file).to_owned())
            .filter(|file| self.includes(file))
            .collect();
        files.sort();
        walk.files = files;
        Ok(walk)
    }

    /// The error if it has no files.
    pub(super) fn no_files(&self) -> Failure {
        let root = self.root();
        let name = text::one_line(&root.to_string_lossy()).into_owned();
        if self.template.is_none() {
            let hint = "files with these extensions are verified: json, ndjson, jsonl, csv, tsv, xlsx, parquet, sqlite, db, with or without .gz or .zst";
            return Failure::usage(format!("there is no export in the folder `{name}`"), hint);
        }
        Failure::usage(
            format!("no file in the folder `{name}` matches the template"),
            "check the template; it is that of `export -o`",
        )
    }

    /// Rejects a folder that has two paths with files of the lake.
    fn check_repeated(
        &self,
        repeated: &[(PathBuf, PathBuf)],
        files: &[PathBuf],
    ) -> Result<(), Failure> {
        let is_read = |(again, first): &&(PathBuf, PathBuf)| {
            let inside = |file: &PathBuf| file.strip_prefix(plain(first)).ok().map(Path::to_owned);
            let mut inside = files.iter().filter_map(inside);
            inside.any(|file| self.includes(&plain(again).join(file)))
        };
        let Some((again, first)) = repeated.iter().find(is_read) else {
            return Ok(());
        };
        let [again, first] =
            [again, first].map(|path| text::one_line(&path.to_string_lossy()).into_owned());
        Err(Failure::new(
            Kind::Protocol,
            format!("the folders `{first}` and `{again}` are the same one, so its batches would be read twice"),
        )
        .hint("remove the link"))
    }

    fn includes(&self, file: &Path) -> bool {
        match &self.template {
            None => {
                let extension = detect::extension(file);
                extension.is_some_and(|extension| EXTENSIONS.contains(&&*extension))
                    || is_parquet(file)
            }
            Some(template) => file.to_str().is_some_and(|name| template.fits(name)),
        }
    }
}

/// Returns whether a local file is Parquet by its first bytes: pandas, pyarrow and Spark read all files of a folder, whatever
/// their names.
fn is_parquet(file: &Path) -> bool {
    let mut head = [0; detect::PARQUET.len()];
    let read = fs::File::open(file).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == detect::PARQUET
}

/// Returns the objects below `folder`; `inside` is the address of one in it.
fn objects(
    folder: &Path,
    inside: &ObjectAddress,
    storage: &Storage,
) -> Result<Vec<PathBuf>, Failure> {
    let folder = format!("{}/", folder.to_string_lossy().trim_end_matches('/'));
    let is_skipped = |part: &str| part.starts_with(['_', '.']);
    let names = storage.cloud.sizes(inside)?.into_keys().filter(|name| {
        let below = name.strip_prefix(&folder);
        below.is_some_and(|below| !below.split('/').any(is_skipped))
    });
    Ok(names.map(PathBuf::from).collect())
}

/// Returns a path without a leading `./`.
pub(super) fn plain(path: &Path) -> &Path {
    path.strip_prefix("./").unwrap_or(path)
}

/// Finds all files below a folder, also behind links to folders, as query engines do.
#[derive(Default)]
struct FolderWalk {
    files: Vec<PathBuf>,
    /// The folders so far, and the path to each.
    seen: HashMap<PathBuf, PathBuf>,
    /// Second paths to a folder, and the first one.
    repeated: Vec<(PathBuf, PathBuf)>,
}

impl FolderWalk {
    fn enter(&mut self, folder: &Path) -> Result<(), Failure> {
        let cannot = |error: io::Error| {
            let name = text::one_line(&folder.to_string_lossy()).into_owned();
            let hint = "check that it exists and that you have permission to read it";
            Failure::usage(format!("cannot read the folder `{name}`"), hint).caused_by(error)
        };
        match self.seen.entry(folder.canonicalize().map_err(cannot)?) {
            Entry::Vacant(slot) => drop(slot.insert(folder.to_owned())),
            Entry::Occupied(slot) => {
                // A link to a folder around it is a circle, which no program can read to its end.
                if !folder.starts_with(slot.get()) {
                    self.repeated.push((folder.to_owned(), slot.get().clone()));
                }
                return Ok(());
            }
        }
        // Folders come before links to them.
        let mut links = Vec::new();
        for entry in fs::read_dir(folder).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let name = entry.file_name();
            if matches!(name.as_encoded_bytes().first(), Some(b'_' | b'.')) {
                continue;
            }
            let path = entry.path();
            if entry.file_type().map_err(cannot)?.is_dir() {
                self.enter(&path)?;
            } else if path.is_dir() {
                links.push(path);
            } else if path.metadata().map_or(true, |metadata| metadata.is_file()) {
                // A link that leads nowhere, too: if it is an export, opening it fails.
                self.files.push(path);
            }
        }
        links.iter().try_for_each(|link| self.enter(link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_exports_without_hidden_names() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/b")).expect("folders");
        fs::create_dir_all(at("_temporary")).expect("a folder");
        for name in [
            "a/b/2.csv",
            "a/1.NDJSON.gz",
            "_manifest.json",
            ".hidden.csv",
            "note.txt",
            "_temporary/3.csv",
        ] {
            fs::write(at(name), "").expect("a file");
        }
        let lake = Lake::find(folder.path())
            .expect("readable")
            .expect("a lake");
        let files = lake.distinct_files(&Storage::default()).expect("files");
        assert_eq!(files, [at("a/1.NDJSON.gz"), at("a/b/2.csv")]);
        fs::write(at("a/part-0.old"), "PAR1").expect("a file");
        let files = lake.distinct_files(&Storage::default()).expect("files");
        assert_eq!(files[2], at("a/part-0.old"));
        assert!(Lake::find(&at("note.txt")).expect("readable").is_none());
    }
}
