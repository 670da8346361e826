//! Bytes on their way to the target, compressed or not. Every write, flush and end is checked.

use std::io::{self, BufWriter, Write};

use flate2::write::GzEncoder;

use super::target::Target;
use crate::error::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

const BUFFER: usize = 128 * 1024;

pub(crate) struct Output {
    encoder: Encoder,
    live: bool,
}

enum Encoder {
    Plain(BufWriter<Target>),
    Gzip(GzEncoder<BufWriter<Target>>),
    Zstd(zstd::Encoder<'static, BufWriter<Target>>),
}

impl Output {
    pub(crate) fn new(target: Target, compression: Compression) -> io::Result<Self> {
        let live = target.is_stdout();
        let buffer = BufWriter::with_capacity(BUFFER, target);
        let encoder = match compression {
            Compression::None => Encoder::Plain(buffer),
            Compression::Gzip => {
                Encoder::Gzip(GzEncoder::new(buffer, flate2::Compression::default()))
            }
            Compression::Zstd => Encoder::Zstd(zstd::Encoder::new(buffer, 0)?),
        };
        Ok(Self { encoder, live })
    }

    /// Tells whether somebody may be reading along.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Ends the stream of bytes and publishes the target.
    pub(crate) fn publish(self) -> Result<(), Failure> {
        let buffer = match self.encoder {
            Encoder::Plain(buffer) => Ok(buffer),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
        };
        let target =
            buffer.and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error));
        target.map_err(Failure::from_output)?.publish()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::Plain(writer) => writer.write(bytes),
            Encoder::Gzip(writer) => writer.write(bytes),
            Encoder::Zstd(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Plain(writer) => writer.flush(),
            Encoder::Gzip(writer) => writer.flush(),
            Encoder::Zstd(writer) => writer.flush(),
        }
    }
}
