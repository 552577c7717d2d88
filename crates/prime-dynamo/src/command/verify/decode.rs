//! What compresses a file, told by its first bytes, and its plain bytes, a piece at a time.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Plain bytes that are held at once.
const PIECE: usize = 64 * 1024;

/// A zstd frame may refer back this far; `zstd --long=27`, the farthest that needs no special flag to
/// read, does.
const MAX_WINDOW: u64 = 128 * 1024 * 1024;

/// The plain bytes of a file that is gzip, zstd, or neither.
///
/// # Errors
///
/// The first bytes cannot be read.
pub(super) fn plain<'a>(mut source: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut head = Vec::with_capacity(4);
    (&mut source).take(4).read_to_end(&mut head)?;
    let kind = Kind::of(&head);
    let source = Cursor::new(head).chain(source);
    Ok(match kind {
        Kind::Plain => Box::new(source),
        Kind::Gzip => Box::new(BufReader::with_capacity(PIECE, Gzip(MultiGzDecoder::new(source)))),
        Kind::Zstd => Box::new(BufReader::with_capacity(PIECE, Zstd::new(source))),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Gzip,
    Zstd,
}

impl Kind {
    /// No JSON text begins like any of these.
    const fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or one that is skipped.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

fn cut_short(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the {what} data is cut short"))
}

/// Any number of gzip members, one after the other.
struct Gzip<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|problem| match problem.kind() {
            io::ErrorKind::UnexpectedEof => cut_short("gzip"),
            io::ErrorKind::Interrupted => problem,
            kind => io::Error::new(kind, format!("the gzip data is damaged: {problem}")),
        })
    }
}

/// Any number of zstd frames, one after the other.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Self { source, decoder, in_frame: false }
    }

    /// Begins the next frame; false where there is none.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut (&mut self.source).take(length), &mut io::sink())? < length {
                        return Err(cut_short("zstd"));
                    }
                }
                Err(problem) => return Err(self.damaged(&problem)),
            }
        }
        Ok(false)
    }

    /// The decoder meets the end of its source as any other error.
    fn damaged(&mut self, problem: &FrameDecoderError) -> io::Error {
        match self.source.fill_buf() {
            Ok([]) => cut_short("zstd"),
            _ => io::Error::new(io::ErrorKind::InvalidData, format!("the zstd data is damaged: {problem}")),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                if !self.begin()? {
                    return Ok(0);
                }
                self.in_frame = true;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                // One block at a time: what one frame may grow to is not ours to hold.
                let block = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(problem) = self.decoder.decode_blocks(&mut self.source, block) {
                    return Err(self.damaged(&problem));
                }
            }
            let n_bytes = self.decoder.read(buffer)?;
            if n_bytes > 0 || buffer.is_empty() {
                return Ok(n_bytes);
            }
            let (told, found) =
                (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
            if told.is_some() && told != found {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the zstd data is damaged: its checksum differs",
                ));
            }
            self.in_frame = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        // A reader that hands out a byte at a time shows what relies on the size of a read.
        let mut source = plain(BufReader::with_capacity(1, bytes))?;
        source.read_to_end(&mut all)?;
        Ok(all)
    }

    const TEXT: &[u8] = b"{\"a\":1}\n{\"a\":1}\n{\"a\":2}\n";

    #[test]
    fn the_content_tells_what_compresses_it() {
        for bytes in [TEXT.to_vec(), gzip(TEXT), zstd(TEXT)] {
            assert_eq!(read(&bytes).unwrap(), TEXT);
        }
        for short in [&b""[..], b"{", b"\x1f", b"\x28\xb5"] {
            assert_eq!(read(short).unwrap(), short);
        }
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        for compress in [gzip, zstd] {
            let two = [compress(TEXT), compress(b""), compress(TEXT)].concat();
            assert_eq!(read(&two).unwrap(), [TEXT, TEXT].concat());
        }
        let skipped = [&b"\x5a\x2a\x4d\x18\x03\0\0\0abc"[..], &zstd(TEXT)].concat();
        assert_eq!(read(&skipped).unwrap(), TEXT);
        assert!(read(b"\x5a\x2a\x4d\x18\x04\0\0\0abc").unwrap_err().to_string().contains("cut short"));
    }

    #[test]
    fn a_file_that_was_cut_is_named_wherever_it_was_cut() {
        for (name, whole) in [("gzip", gzip(TEXT)), ("zstd", zstd(TEXT))] {
            for end in 4..whole.len() {
                let problem = read(&whole[..end]).unwrap_err().to_string();
                assert_eq!(problem, format!("the {name} data is cut short"), "{end} of {}", whole.len());
            }
        }
    }

    #[test]
    fn a_damaged_checksum_and_what_follows_the_end_are_named() {
        let mut bytes = gzip(TEXT);
        let at = bytes.len() - 6;
        bytes[at] ^= 1;
        assert!(read(&bytes).unwrap_err().to_string().contains("damaged"));
        let mut bytes = zstd(TEXT);
        let at = bytes.len() - 1;
        bytes[at] ^= 1;
        assert!(read(&bytes).unwrap_err().to_string().contains("damaged"));
        for compress in [gzip, zstd] {
            let followed = [&compress(TEXT)[..], b"more than nothing"].concat();
            assert!(read(&followed).unwrap_err().to_string().contains("damaged"), "{:?}", read(&followed));
        }
    }

    #[test]
    fn a_frame_that_wants_a_huge_window_is_refused() {
        // Window descriptor 0xff: almost 4 TiB.
        let problem = read(b"\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00").unwrap_err().to_string();
        assert!(problem.contains("zstd"), "{problem}");
    }

    proptest! {
        #[test]
        fn damaged_data_never_panics(
            at in 4..200_usize, bits in 1..=255_u8, is_zstd in any::<bool>(), text in "[a-z{}:, ]{0,300}"
        ) {
            let mut bytes = if is_zstd { zstd(text.as_bytes()) } else { gzip(text.as_bytes()) };
            let at = at % bytes.len();
            bytes[at] ^= bits;
            let _ = read(&bytes);
        }
    }
}
