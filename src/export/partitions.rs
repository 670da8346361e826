//! Partitioned exports: batches are buffered by file until all have arrived.
//!
//! A lake of a million batches may have tens of thousands of files, and not every format can be appended to.
//! Batches are therefore buffered in one temporary file, in chunks, and each file is then written in one go
//! from its chunks. This limits memory and open files for every format. Nothing is published until everything
//! is written.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memchr;

use super::manifest::ManifestFile;
use super::pending::Pending;
use super::template::{Crops, DateGap, Template};
use crate::batch::digest::SetDigest;
use crate::batch::range::Range;
use crate::batch::{Batch, CREATION_DATE, canonical_date};
use crate::error::{Failure, Kind};
use crate::formats::{BatchWriter, ExportOutcome, WriterReport};
use crate::storage::cleanup::{Folders, PublishedObjects};
use crate::storage::cloud::{ObjectAddress, Upload};
use crate::storage::output::FinishedOutput;
use crate::storage::path::{existing_folder, folder_of, follow_links, resolved};
use crate::storage::temp_file::PartFiles;
use crate::storage::{self, Compression, EncodedOutput, Location, Storage};
use crate::text;

/// The buffer in memory, for all files together.
const BUFFER: usize = 8 << 20;

/// Creates the writer of one file.
pub(crate) type WriterFactory =
    Box<dyn Fn(EncodedOutput) -> Result<Box<dyn BatchWriter>, Failure> + Send>;

/// How to write the files.
pub(crate) struct PartitionOptions {
    pub(crate) compression: Compression,
    pub(crate) no_clobber: bool,
    /// Whether a manifest is written, with the checksum of each file.
    pub(crate) has_manifest: bool,
    /// The locations of the manifest and of the marker file, which no batches may be written to.
    pub(crate) reserved: Vec<Location>,
    /// Creates the digest of one file; `None` if neither the files nor a manifest have one.
    pub(crate) new_digest: Option<Box<dyn Fn() -> SetDigest + Send>>,
    pub(crate) new_writer: WriterFactory,
    /// The requested dates.
    pub(crate) range: Range,
    /// The only files to write; `None` for all.
    pub(crate) only: Option<HashSet<String>>,
    /// The names of crops in file names.
    pub(crate) crops: Crops,
    /// Written before the first file is replaced.
    pub(crate) pending: Option<Pending>,
    /// The marker file of a complete export. Removed before the first file is replaced.
    pub(crate) success_marker: Option<Location>,
}

/// What an export has published.
pub(crate) struct PublishedExport {
    /// What is known about each file; batches and digests only if there are many.
    pub(crate) files: Vec<ManifestFile>,
    pub(crate) report: WriterReport,
    /// The digest of all batches, if one was computed.
    pub(crate) digest: Option<SetDigest>,
}

/// Buffers batches by file, and writes the files at the end.
pub(crate) struct PartitionedWriter {
    storage: Storage,
    template: Template,
    /// The years or months of the batches, the first and another, if the template does not tell them apart.
    mixed: Option<(DateGap, Vec<String>)>,
    options: PartitionOptions,
    /// The digest of all files.
    digest: Option<SetDigest>,
    /// Indexes into `parts`, by name.
    names: HashMap<String, usize>,
    parts: Vec<Partition>,
    /// Bytes buffered in memory.
    buffered: usize,
    spill_file: File,
    /// The name of its folder, for messages.
    spill_name: String,
    /// Bytes in the temporary file.
    spilled: u64,
}

/// The batches of one file.
#[derive(Default)]
struct Partition {
    name: String,
    batches: u64,
    /// Whether any batch was created within the requested dates.
    is_within: bool,
    /// One batch per line.
    lines: Vec<u8>,
    /// The offsets and lengths of earlier lines in the temporary file.
    chunks: Vec<(u64, usize)>,
}

impl Partition {
    fn location(&self) -> Result<Location, Failure> {
        // A file with this name, not standard output.
        let name = if self.name == "-" { "./-" } else { &self.name };
        Location::new(Some(Path::new(name)))
    }
}

/// What changed in a local lake before its files: the list of pending changes is new, and the marker is gone.
#[derive(Default)]
struct Announced {
    list: Option<PathBuf>,
    marker: Option<PathBuf>,
}

impl Announced {
    /// Restores the lake, because no file was replaced. If this fails, the lake is as after a killed run.
    fn undo(self) {
        let _ = self.marker.map(File::create);
        let _ = self.list.map(fs::remove_file);
    }
}

impl PartitionedWriter {
    /// Prepares to write files named by `template`, and checks that their folder is writable.
    pub(crate) fn new(
        template: Template,
        options: PartitionOptions,
        storage: &Storage,
    ) -> Result<Self, Failure> {
        let folder = template.folder();
        // A name in the same folder that no template produces.
        let folder = match ObjectAddress::parse(&folder.join(".trayscan-check"))? {
            Some(address) => {
                // Checks that objects can be written there, and leaves nothing.
                Upload::begin(&address, false, true, storage)?;
                std::env::temp_dir()
            }
            None => parent_of(&folder)?,
        };
        let spill_file =
            tempfile::tempfile_in(&folder).map_err(|error| cannot_write(&folder, error))?;
        Ok(Self {
            storage: storage.clone(),
            mixed: template.gap().map(|gap| (gap, Vec::new())),
            template,
            digest: options.new_digest.as_ref().map(|new| new()),
            options,
            names: HashMap::new(),
            parts: Vec::new(),
            buffered: 0,
            spill_file,
            spill_name: format!("the folder {}", Location::File(folder).name()),
            spilled: 0,
        })
    }

    /// Fails if [`PartitionedWriter::new`] would find that the folder is not writable; sends and writes nothing.
    pub(crate) fn check(template: &Template, storage: &Storage) -> Result<(), Failure> {
        let folder = template.folder();
        match ObjectAddress::parse(&folder.join(".trayscan-check"))? {
            Some(address) => storage.cloud.check(&address),
            None => check_folder(&folder),
        }
    }

    pub(crate) fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        let name = self.template.name(batch, &mut self.options.crops);
        let only = self.options.only.as_ref();
        if only.is_some_and(|only| !only.contains(&name)) {
            return Ok(());
        }
        if let Some(((.., length), periods)) = &mut self.mixed
            && periods.len() < 2
            && let Some(date) = batch.typed(CREATION_DATE)
            && let Some(period) = canonical_date(&date).get(..*length)
            && !periods.iter().any(|known| known == period)
        {
            periods.push(period.to_owned());
        }
        let parts = &mut self.parts;
        let index = *self.names.entry(name).or_insert_with_key(|name| {
            parts.push(Partition {
                name: name.clone(),
                ..Partition::default()
            });
            parts.len() - 1
        });
        let part = &mut parts[index];
        part.batches += 1;
        part.is_within = part.is_within
            || batch
                .created()
                .is_none_or(|created| self.options.range.contains(created.second));
        part.lines.extend_from_slice(batch.text().as_bytes());
        part.lines.push(b'\n');
        self.buffered += batch.text().len() + 1;
        if self.buffered > BUFFER {
            let spilled = self.spill();
            spilled.map_err(|error| Failure::from_output(&self.spill_name, error))?;
        }
        Ok(())
    }

    /// Returns the names of crops in file names; `None` if the template does not contain them.
    pub(crate) fn crop_names(&self) -> Option<BTreeMap<String, String>> {
        let has_crops = self.template.has_crops();
        has_crops.then(|| self.options.crops.names())
    }

    fn spill(&mut self) -> io::Result<()> {
        let mut spill_file = io::BufWriter::new(&mut self.spill_file);
        for part in self.parts.iter_mut().filter(|part| !part.lines.is_empty()) {
            let lines = std::mem::take(&mut part.lines);
            spill_file.write_all(&lines)?;
            part.chunks.push((self.spilled, lines.len()));
            self.spilled += lines.len() as u64;
        }
        self.buffered = 0;
        spill_file.flush()
    }

    /// Prepares the lake for files that are about to be replaced.
    fn announce(&self, files: &[ManifestFile]) -> Result<Announced, Failure> {
        let mut announced = Announced::default();
        if let Some(pending) = &self.options.pending {
            announced.list = pending.location.file().filter(|path| !path.exists());
            let files = files.iter().map(|file| file.path.clone());
            pending.write(files, &self.storage)?;
        }
        if let Some(marker) = &self.options.success_marker {
            announced.marker = marker.file().filter(|path| path.exists());
            marker.remove(&self.storage)?;
        }
        Ok(announced)
    }

    /// Writes all files, then publishes all of them.
    pub(crate) fn publish(
        mut self,
        outcome: &ExportOutcome<'_>,
    ) -> Result<PublishedExport, Failure> {
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        let mut folders = Folders::default();
        let mut part_files = self.temporary_files(&parts, &mut folders)?;
        let mut resolved_paths: HashMap<PathBuf, PathBuf> = HashMap::new();
        let warnings = [
            self.mixed_periods(),
            self.marked_crops(),
            replaced_by_others(&parts),
        ];
        let mut report = WriterReport {
            partition_warnings: warnings.into_iter().flatten().collect(),
            ..WriterReport::default()
        };
        let mut written = Vec::with_capacity(parts.len());
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            let file = part.location()?;
            if let Location::File(path) = &file {
                let created = folders.create_for(path, &self.storage.cleanup);
                created.map_err(|error| cannot_make(path, error))?;
                if let Some(resolved) = resolved(path)
                    && let Some(other) = resolved_paths.insert(resolved, path.clone())
                {
                    return Err(same_file_error(&other, path));
                }
            }
            let pending = self.options.pending.as_ref().map(|list| &list.location);
            let mut reserved = self.options.reserved.iter().chain(pending);
            if reserved.any(|location| location.is(&file)) {
                return Err(reserved_name(&file));
            }
            let output = self.storage.create_part(
                &file,
                self.options.compression,
                self.options.no_clobber,
                part_files.as_mut(),
            )?;
            let (sealed, entry) = self.write_part(&part, output, outcome, &mut report)?;
            written.push(ManifestFile {
                path: file.address(),
                ..entry
            });
            all.push(sealed);
        }
        let announced = self.announce(&written)?;
        let published = FinishedOutput::publish(all);
        let cleanup = &self.storage.cleanup;
        let has_published =
            cleanup.published_files() > 0 || cleanup.published_objects() != PublishedObjects::None;
        if published.is_err() && !has_published {
            announced.undo();
        }
        for (file, published) in written.iter_mut().zip(published?) {
            file.bytes = Some(published.bytes);
            file.sha256 = published.sha256;
        }
        Ok(PublishedExport {
            files: written,
            report,
            digest: self.digest,
        })
    }

    /// Describes which years or months are in the same files.
    fn mixed_periods(&self) -> Option<String> {
        let ((given, missing, _), periods) = self.mixed.as_ref()?;
        let [first, other] = &periods[..] else {
            return None;
        };
        Some(format!(
            "the name of `-o` has `{given}` but not `{missing}`, so the batches of different years or months, such as \
             {first} and {other}, are in the same files; add `{missing}` to tell them apart"
        ))
    }

    /// Says which crops have another name in the folders that engines read the crop from.
    fn marked_crops(&self) -> Option<String> {
        let marked = if self.template.has_crop_folders() {
            self.options.crops.marked()
        } else {
            Vec::new()
        };
        let first = marked.first()?;
        let crops = marked.len() as u64;
        Some(format!(
            "engines that read the crop from the folder names do not see {} as received, because a name is too long, or like another one \
             except for case: `{}` is `{}`; turn that off when you read the files, such as with `hive_partitioning = false` in DuckDB",
            text::count(crops, "crop", "crops"),
            text::shortened(first.0),
            first.1
        ))
    }

    /// Prepares the temporary files of all parts; `None` if they are objects.
    fn temporary_files(
        &self,
        parts: &[Partition],
        folders: &mut Folders,
    ) -> Result<Option<PartFiles>, Failure> {
        let mut part_folders = BTreeSet::new();
        for part in parts {
            if let Location::File(path) = part.location()? {
                let path = follow_links(&path).unwrap_or(path);
                part_folders.insert(folder_of(&path).to_owned());
            }
        }
        if part_folders.is_empty() {
            return Ok(None);
        }
        let inside = self.template.folder().join("name");
        let cleanup = &self.storage.cleanup;
        let created = folders.create_for(&inside, cleanup);
        created.map_err(|error| cannot_make(&inside, error))?;
        let base = folder_of(&inside);
        let parts = PartFiles::new(base, &part_folders, cleanup);
        parts.map(Some).map_err(|error| cannot_write(base, error))
    }

    fn write_part(
        &mut self,
        part: &Partition,
        mut output: EncodedOutput,
        outcome: &ExportOutcome<'_>,
        report: &mut WriterReport,
    ) -> Result<(FinishedOutput, ManifestFile), Failure> {
        let mut digest = self.options.new_digest.as_ref().map(|new| new());
        if self.options.has_manifest {
            output = output.hashed();
        }
        let mut writer = (self.options.new_writer)(output)?;
        for (offset, length) in &part.chunks {
            let lines = self.read_spilled(*offset, *length);
            let lines = lines.map_err(|error| Failure::from_output(&self.spill_name, error))?;
            for_each_batch(lines, |batch| add(batch, writer.as_mut(), digest.as_mut()))?;
        }
        for_each_batch(part.lines.clone(), |batch| {
            add(batch, writer.as_mut(), digest.as_mut())
        })?;
        let (output, more) = writer.finish(&ExportOutcome {
            digest: digest.as_ref(),
            ..*outcome
        })?;
        report.add(more);
        if let (Some(all), Some(digest)) = (&mut self.digest, &digest) {
            all.merge(digest);
        }
        let digest = digest.filter(|_| self.options.has_manifest);
        let entry = ManifestFile {
            batches: Some(part.batches),
            set_digest: digest.as_ref().map(SetDigest::finish),
            unknown_fields_digest: digest.as_ref().and_then(SetDigest::finish_unknown),
            ..ManifestFile::default()
        };
        Ok((output.seal()?, entry))
    }

    fn read_spilled(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.spill_file.seek(SeekFrom::Start(offset))?;
        let mut lines = vec![0; length];
        self.spill_file.read_exact(&mut lines)?;
        Ok(lines)
    }
}

/// Says which existing files will only have batches from outside the requested dates: those have lost the others.
fn replaced_by_others(parts: &[Partition]) -> Option<String> {
    let outside = parts.iter().filter(|part| !part.is_within);
    let mut replaced = outside.filter(|part| Path::new(&part.name).is_file());
    let first = text::one_line(&replaced.next()?.name).into_owned();
    let others = match replaced.count() as u64 {
        0 => String::new(),
        more => format!(" and {}", text::count(more, "other file", "other files")),
    };
    Some(format!(
        "`{first}`{others} existed, and now only has batches that the service returned although they are outside the requested dates; \
         export the whole period of such a file again"
    ))
}

/// Writes a batch, and adds it to the digest if there is one.
pub(super) fn add(
    batch: &Batch,
    writer: &mut dyn BatchWriter,
    digest: Option<&mut SetDigest>,
) -> Result<(), Failure> {
    if let Some(digest) = digest {
        digest.add_kept(batch);
    }
    writer.write(batch)
}

/// Passes each batch in `lines` to `take`.
fn for_each_batch(
    lines: Vec<u8>,
    mut take: impl FnMut(&Batch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // It was valid when it was written.
    let modified = || Failure::new(Kind::Internal, "the temporary file was modified");
    let lines = Arc::new(String::from_utf8(lines).map_err(|_| modified())?);
    let mut offset = 0;
    while let Some(length) = memchr(b'\n', &lines.as_bytes()[offset..]) {
        let batch = match Batch::scan(&lines, offset) {
            Some((batch, scanned)) if scanned == length => Some(batch),
            _ => Batch::read(&lines[offset..offset + length]).batch,
        };
        take(&batch.ok_or_else(modified)?)?;
        offset += length + 1;
    }
    Ok(())
}

/// Returns the folder that exists and in which `folder` can be created; `folder` itself if it exists.
fn parent_of(folder: &Path) -> Result<PathBuf, Failure> {
    existing_folder(folder).map_err(|error| cannot_write(folder, error))
}

/// Fails if `folder` does not exist and cannot be created, or is not writable.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Failure> {
    let folder = parent_of(folder)?;
    storage::check_folder(&folder).map_err(|error| cannot_write(&folder, error))
}

/// The error if two names lead to the same file.
fn same_file_error(first: &Path, second: &Path) -> Failure {
    Failure::new(
        Kind::Output,
        format!(
            "{} and {} are the same file: one is a link to the other",
            Location::File(first.to_owned()).name(),
            Location::File(second.to_owned()).name()
        ),
    )
    .hint("remove the link, or choose another location with `-o`")
}

fn reserved_name(location: &Location) -> Failure {
    let name = location.name();
    let what = format!(
        "a file of batches would have the name {name}, which is that of the manifest or the marker file"
    );
    Failure::new(Kind::Output, what)
        .hint("change the name of `-o` or `--manifest`, so that no crop leads to this name")
}

fn cannot_write(folder: &Path, error: io::Error) -> Failure {
    let name = Location::File(folder.to_owned()).name();
    Failure::new(Kind::Output, format!("cannot write to the folder {name}"))
        .caused_by(error)
        .hint("choose another location with `-o`")
}

fn cannot_make(path: &Path, error: io::Error) -> Failure {
    Failure::new(
        Kind::Output,
        format!(
            "cannot create the folder of {}",
            Location::File(path.to_owned()).name()
        ),
    )
    .caused_by(error)
    .hint("choose another location with `-o`")
}
