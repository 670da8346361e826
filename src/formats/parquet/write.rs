//! Writes `parquet`.
//!
//! Values are buffered column by column until they fill a row group, so memory depends on the size of a
//! group and not of the export: while one is written, the next one is buffered in the memory that this frees.
//! A value that a column cannot store exactly is an error, and never rounded. The rows of a group are sorted by
//! date unless `--sort` is given.

mod chunks;
mod column_buffer;
mod group_writer;
mod order;
mod packed_numbers;
mod schema;
mod text_store;

use std::sync::Arc;

use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;

use crate::batch::Batch;
use crate::batch::digest;
use crate::batch::filter::Fields;
use crate::error::Failure;
use crate::formats::writer::inexact;
use crate::formats::{BatchWriter, ExportInfo, ExportOutcome, Finished, WriterReport};
use crate::storage::EncodedOutput;
use chunks::ChunkPool;
use column_buffer::ColumnBuffer;
use group_writer::{GroupWriter, SharedOutput, io_error};
use order::RowOrder;
use schema::properties;

/// A row group ends at this number of rows, as in DuckDB, or of buffered bytes. Engines read groups in
/// parallel, so a few hundred thousand rows keep several cores busy.
const GROUP_ROWS: u32 = 122_880;
const GROUP_BYTES: usize = 48 << 20;

pub(crate) struct Parquet {
    writer: GroupWriter,
    columns: Vec<ColumnBuffer>,
    pool: ChunkPool,
    rows: u32,
    /// The size of the buffered values before they are packed.
    size: usize,
    /// The number of rows that end a group.
    group_rows: u32,
    metadata: Vec<(&'static str, String)>,
}

impl Parquet {
    pub(crate) fn new(
        output: EncodedOutput,
        fields: &Fields,
        info: &ExportInfo,
        extracted: String,
    ) -> Result<Self, Failure> {
        let columns = fields.columns.iter().copied().map(Some);
        let columns = columns.chain((!fields.named).then_some(None));
        let columns: Vec<ColumnBuffer> = columns.map(ColumnBuffer::new).collect();
        let types: Result<Vec<_>, ParquetError> =
            columns.iter().map(ColumnBuffer::describe).collect();
        let schema = types.and_then(|types| {
            Type::group_type_builder("batches")
                .with_fields(types)
                .build()
        });
        let order = RowOrder::new(fields, info.sorting.as_ref());
        let writer = schema.and_then(|schema| {
            let properties = properties(&columns, order.declared(&columns), GROUP_ROWS);
            let properties = Arc::new(properties);
            SerializedFileWriter::new(SharedOutput(Some(output)), Arc::new(schema), properties)
        });
        let writer = writer.map_err(|error| Failure::from_output("the output", io_error(error)))?;
        let mut metadata = vec![
            ("trayscan.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("trayscan.range", info.range.clone()),
            ("trayscan.extracted", extracted),
        ];
        let source = Some(info.source.clone()).filter(|source| !source.is_empty());
        metadata.extend(source.map(|source| ("trayscan.base_url", source)));
        Ok(Self {
            writer: GroupWriter::new(writer, order),
            columns,
            pool: ChunkPool::default(),
            rows: 0,
            size: 0,
            group_rows: GROUP_ROWS,
            metadata,
        })
    }

    /// Starts to write the buffered rows as one row group.
    fn end_group(&mut self) -> Result<(), Failure> {
        let next = self
            .columns
            .iter()
            .map(|buffer| ColumnBuffer::new(buffer.column));
        let next = next.collect();
        let columns = std::mem::replace(&mut self.columns, next);
        self.size = 0;
        let rows = std::mem::take(&mut self.rows);
        self.writer.start(columns, rows, &mut self.pool)
    }
}

impl BatchWriter for Parquet {
    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        for buffer in &mut self.columns {
            match buffer.add(batch, &mut self.pool) {
                Ok(size) => self.size += size,
                Err(into) => {
                    let column = buffer.column.unwrap_or_default();
                    return Err(inexact(batch, column, &format!("{into} cannot hold")));
                }
            }
        }
        self.rows += 1;
        if self.rows >= self.group_rows || self.size >= GROUP_BYTES {
            self.end_group()?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, outcome: &ExportOutcome<'_>) -> Finished {
        let mut metadata = self.metadata;
        if let Some(digest) = outcome.digest {
            metadata.push(("trayscan.batches", digest.count().to_string()));
            metadata.push(("trayscan.set_digest", digest.finish()));
            metadata.push(("trayscan.digest_version", digest::VERSION.to_string()));
            let unknown = digest.finish_unknown();
            metadata.extend(unknown.map(|digest| ("trayscan.unknown_fields_digest", digest)));
        }
        let output = self.writer.finish(self.columns, self.rows, metadata)?;
        Ok((output, WriterReport::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Compression, Location, Storage};
    use ::parquet::file::metadata::RowGroupMetaData;
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    use ::parquet::record::Field;
    use std::fs::{self, File};
    use std::path::Path;

    /// Returns a writer of groups of 1000 rows.
    fn writer(path: &Path) -> Parquet {
        let location = Location::File(path.to_owned());
        let output = Storage::default().create(&location, Compression::None, false);
        let (output, info) = (output.expect("an output"), ExportInfo::default());
        let writer = Parquet::new(output, &Fields::all(), &info, String::new());
        let mut writer = writer.expect("a writer");
        writer.group_rows = 1000;
        writer
    }

    fn write(writer: &mut Parquet, rows: usize) -> Result<(), Failure> {
        let mut random = fastrand::Rng::with_seed(1);
        (0..rows).try_for_each(|row| {
            let link = random.u128(..);
            let json = format!(
                r#"{{"batch_id":"{row:05}","batch_name":"n","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images":{row},"analysis_link":"{link:x}","warnings":false}}"#
            );
            writer.write(&Batch::read(&json).batch.expect("a batch"))
        })
    }

    #[test]
    fn groups_are_written_in_order() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("a.parquet");
        let mut writer = writer(&path);
        write(&mut writer, 3500).expect("written");
        let finished = Box::new(writer).finish(&ExportOutcome::default());
        finished.expect("finished").0.publish().expect("published");

        let file = File::open(&path).expect("a file");
        let reader = SerializedFileReader::new(file).expect("a parquet file");
        let groups = reader.metadata().row_groups();
        let rows: Vec<i64> = groups.iter().map(RowGroupMetaData::num_rows).collect();
        assert_eq!(rows, [1000, 1000, 1000, 500]);
        let rows = reader.get_row_iter(None).expect("rows");
        let ids = rows.map(|row| row.expect("a row").to_string());
        for (number, row) in ids.enumerate() {
            assert!(row.contains(&format!("batch_id: \"{number:05}\"")), "{row}");
        }
    }

    /// A batch whose date, links and comments vary, some of them null or longer than a chunk.
    fn varied(row: u32) -> (Batch, [Option<String>; 4]) {
        let random = u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let present = |text: String, out_of: u64| (random % out_of != 0).then_some(text);
        let comment = "ä".repeat(match random % 100 {
            0 => 20_000,
            length => usize::try_from(length).expect("a length"),
        });
        let values = [
            present(format!("2026-05-01T{:02}:00:00Z", random % 24), 5),
            present(format!("https://scan.example.com/{random:x}"), 7),
            present(comment, 3),
            present(random.to_string(), 2),
        ];
        let json = |text: &Option<String>| {
            text.as_ref()
                .map_or("null".to_owned(), |text| format!("\"{text}\""))
        };
        let [date, link, comment, _] = values.each_ref().map(json);
        let images = values[3].as_deref().unwrap_or("null");
        let json = format!(
            r#"{{"batch_id":"{row:05}","batch_name":"n","batch_creation_date":{date},"number_of_images":{images},"analysis_link":{link},"comment":{comment},"warnings":{}}}"#,
            random.is_multiple_of(2),
        );
        (Batch::read(&json).batch.expect("a batch"), values)
    }

    #[test]
    fn groups_keep_all_values_and_have_their_own_order() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("a.parquet");
        let mut writer = writer(&path);
        writer.group_rows = 3000;
        for row in 0..10_000 {
            writer.write(&varied(row).0).expect("written");
        }
        let finished = Box::new(writer).finish(&ExportOutcome::default());
        finished.expect("finished").0.publish().expect("published");

        let mut expected: Vec<_> = (0..10_000).map(|row| (row, varied(row).1)).collect();
        for group in expected.chunks_mut(3000) {
            group.sort_by_key(|(row, values)| (values[0].is_none(), values[0].clone(), *row));
        }
        let reader = SerializedFileReader::new(File::open(&path).expect("a file"));
        let reader = reader.expect("a parquet file");
        let rows = reader.get_row_iter(None).expect("rows");
        let rows: Vec<_> = rows.map(|row| row.expect("a row")).collect();
        assert_eq!(rows.len(), expected.len());
        for (found, (row, values)) in rows.iter().zip(expected) {
            let cell = |name: &str| {
                let cell = found.get_column_iter().find(|(found, _)| *found == name);
                match cell.expect(name).1 {
                    Field::Null => None,
                    Field::Str(text) => Some(text.clone()),
                    Field::TimestampMicros(moment) => {
                        let hour = moment / 3_600_000_000 % 24;
                        Some(format!("2026-05-01T{hour:02}:00:00Z"))
                    }
                    other => Some(other.to_string()),
                }
            };
            assert_eq!(cell("batch_id"), Some(format!("{row:05}")));
            let names = [
                "batch_creation_date",
                "analysis_link",
                "comment",
                "number_of_images",
            ];
            assert_eq!(names.map(cell), values, "{row}");
        }
    }

    #[test]
    fn a_writer_that_is_dropped_leaves_the_old_file_and_no_other() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("a.parquet");
        fs::write(&path, "old").expect("written");
        let mut writer = writer(&path);
        write(&mut writer, 2000).expect("written");
        drop(writer);
        assert_eq!(fs::read(&path).expect("a file"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_error_on_the_other_thread_is_returned() {
        let mut writer = writer(Path::new("/dev/full"));
        let error = write(&mut writer, 20_000).expect_err("a full disk");
        assert_eq!(error.kind, crate::error::Kind::Output);
        assert_eq!(error.to_string(), "cannot write to `/dev/full`");
        let again = Box::new(writer).finish(&ExportOutcome::default());
        assert!(again.is_err());
    }
}
