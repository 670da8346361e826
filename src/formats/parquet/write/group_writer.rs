//! Writes row groups, each on a thread of its own while the next one is buffered. There is one such thread at a
//! time, so groups are written in order.

use std::io::{self, Write};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::writer::SerializedFileWriter;
use bytes::Bytes;

use super::chunks::ChunkPool;
use super::column_buffer::ColumnBuffer;
use super::order::RowOrder;
use crate::error::{Failure, Kind};
use crate::storage::EncodedOutput;
use crate::terminal;

/// Writes row groups, and then the footer. After an error, it has neither an encoder nor a thread.
pub(super) struct GroupWriter {
    encoder: Option<Box<GroupEncoder>>,
    /// Returns the encoder when its group is written.
    thread: Option<JoinHandle<Result<Box<GroupEncoder>, Failure>>>,
}

struct GroupEncoder {
    writer: SerializedFileWriter<SharedOutput>,
    order: RowOrder,
    /// Passes the memory of columns that are written to the next group, if there may be one.
    free: Option<Sender<Vec<Bytes>>>,
}

impl GroupWriter {
    pub(super) fn new(writer: SerializedFileWriter<SharedOutput>, order: RowOrder) -> Self {
        Self {
            encoder: Some(Box::new(GroupEncoder {
                writer,
                order,
                free: None,
            })),
            thread: None,
        }
    }

    /// Waits until the group before is written, and starts to write this one. `pool` gets the memory of its columns.
    pub(super) fn start(
        &mut self,
        columns: Vec<ColumnBuffer>,
        rows: u32,
        pool: &mut ChunkPool,
    ) -> Result<(), Failure> {
        let mut encoder = self.encoder()?;
        let (free, written) = mpsc::channel();
        encoder.free = Some(free);
        pool.next_group(written);
        let (sender, receiver) = mpsc::sync_channel(1);
        let thread = terminal::spawn("parquet", move || {
            let (encoder, columns): (Box<GroupEncoder>, _) =
                receiver.recv().map_err(|_| ended())?;
            encoder.with_group(columns, rows)
        });
        match thread {
            Ok(thread) => {
                self.thread = Some(thread);
                let sent = sender.send((encoder, columns));
                sent.map_err(|_| ended())?;
            }
            // There are too many threads.
            Err(_) => self.encoder = Some(encoder.with_group(columns, rows)?),
        }
        Ok(())
    }

    /// Writes the last group and the footer.
    pub(super) fn finish(
        mut self,
        columns: Vec<ColumnBuffer>,
        rows: u32,
        metadata: Vec<(&'static str, String)>,
    ) -> Result<EncodedOutput, Failure> {
        let mut encoder = self.encoder()?;
        let written = encoder.write_group(columns, rows);
        let finished = written.and_then(|()| encoder.finish(metadata));
        finished.map_err(|error| encoder.failure(error))?;
        let output = encoder.writer.inner_mut().0.take();
        output.ok_or_else(|| Failure::new(Kind::Internal, "the output is already closed"))
    }

    /// Waits for the thread, if there is one.
    fn encoder(&mut self) -> Result<Box<GroupEncoder>, Failure> {
        match (self.encoder.take(), self.thread.take()) {
            (Some(encoder), _) => Ok(encoder),
            (None, Some(thread)) => thread.join().map_err(|_| ended())?,
            (None, None) => Err(ended()),
        }
    }
}

impl Drop for GroupWriter {
    fn drop(&mut self) {
        // The output must be closed before the program ends, so that no temporary file is left.
        let _ = self.encoder();
    }
}

fn ended() -> Failure {
    Failure::new(
        Kind::Internal,
        "the thread that writes row groups has ended",
    )
}

impl GroupEncoder {
    /// Writes the rows as one row group.
    fn with_group(
        mut self: Box<Self>,
        columns: Vec<ColumnBuffer>,
        rows: u32,
    ) -> Result<Box<Self>, Failure> {
        let written = self.write_group(columns, rows);
        written.map_err(|error| self.failure(error))?;
        Ok(self)
    }

    /// Writes the rows, if any, as one row group.
    fn write_group(&mut self, columns: Vec<ColumnBuffer>, rows: u32) -> Result<(), ParquetError> {
        if rows == 0 {
            return Ok(());
        }
        // Dropped at the end: the next group does not wait for more.
        let free = self.free.take();
        let order = self.order.permutation(&columns, rows);
        let mut group = self.writer.next_row_group()?;
        for buffer in columns {
            let column = group.next_column()?;
            // Buffers and schema are from the same list of columns, so this never fails.
            let mut column = column.ok_or_else(|| ParquetError::IndexOutOfBound(0, 0))?;
            let chunks = buffer.write(&mut column, &order)?;
            column.close()?;
            if let Some(free) = &free {
                // After the last group, nobody receives them.
                let _ = free.send(chunks);
            }
        }
        group.close().map(drop)
    }

    fn finish(&mut self, metadata: Vec<(&'static str, String)>) -> Result<(), ParquetError> {
        for (key, value) in metadata {
            let entry = KeyValue::new(key.to_owned(), value);
            self.writer.append_key_value_metadata(entry);
        }
        self.writer.finish()?;
        Ok(self.writer.flush()?)
    }

    /// Converts an error of the output to a message for the user.
    fn failure(&mut self, error: ParquetError) -> Failure {
        let error = io_error(error);
        match &mut self.writer.inner_mut().0 {
            Some(output) => output.failure(error),
            None => Failure::from_output("the output", error),
        }
    }
}

/// The output, which `finish` takes back.
pub(super) struct SharedOutput(pub(super) Option<EncodedOutput>);

impl Write for SharedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(output) => output.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Returns the error of the output, if that is the cause.
pub(super) fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
