//! The output of a parquet file, as the parquet crate needs it.

use std::io::{self, Write};

use ::parquet::errors::ParquetError;

use crate::storage::EncodedOutput;

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
