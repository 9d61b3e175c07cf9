//! Reads what Zstandard has compressed, as a stream: what takes a few bytes on disk may be of any length.

use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read};

/// How every compressed file begins.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// How far back in its text a file may refer, which is how much of that is held, in bytes: what `zstd --ultra` uses without
/// being told more.
const WINDOW_MAX: u64 = 128 << 20;
/// The most that is read of what one file unpacks to, in bytes.
const UNPACKED_MAX: u64 = 1 << 30;

/// Whether a file that begins so is compressed.
pub fn is_packed(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

/// The text of a compressed file. Reading fails where that is not whole, or longer than 1 GB.
///
/// # Errors
/// Where it does not begin as a compressed file does, or asks for too much memory.
pub fn unpack(packed: impl Read) -> io::Result<impl Read> {
    let decoder = StreamingDecoder::new_with_max_window_size(packed, WINDOW_MAX).map_err(io::Error::other)?;
    Ok(Bounded { rest: UNPACKED_MAX, text: decoder })
}

struct Bounded<R> {
    rest: u64,
    text: R,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer)?;
        let rest = self.rest.checked_sub(read as u64);
        self.rest = rest.ok_or_else(|| io::Error::other("it unpacks to more than 1 GB, which is not read"))?;
        Ok(read)
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod testing {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    /// A compressed file with this text.
    pub fn pack(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;

    /// A compressed file of runs of one letter, of 128 kB each.
    fn runs(count: usize) -> Vec<u8> {
        let block = |is_last: bool| [((128 << 10) << 3 | 1 << 1 | usize::from(is_last)) as u32].map(u32::to_le_bytes);
        let head = [&MAGIC[..], &[0, 0x38]].concat(); // a window of 128 kB
        let body = (1..=count).flat_map(|at| {
            let [[a, b, c, _]] = block(at == count);
            [a, b, c, b'x']
        });
        head.into_iter().chain(body).collect()
    }

    #[test]
    fn case_540_what_is_compressed_is_read_as_a_stream_and_within_bounds() {
        let text = b"one line\nand another\n".repeat(1000);
        let packed = testing::pack(&text);
        let mut read = Vec::new();
        unpack(&packed[..]).unwrap().read_to_end(&mut read).unwrap();
        assert!(is_packed(&packed) && !is_packed(&text) && read == text);
        // The beginning of one is there, however the rest is.
        let mut beginning = Vec::new();
        unpack(&packed[..packed.len() - 1]).unwrap().take(10).read_to_end(&mut beginning).unwrap_or_default();
        assert!(unpack(&b"{\"type\":1}"[..]).is_err() && unpack(&[][..]).is_err());
        // 36 kB that come to more than 1 GB.
        let bomb = runs(9000);
        let unpacked = io::copy(&mut unpack(&bomb[..]).unwrap(), &mut io::sink());
        assert!(unpacked.unwrap_err().to_string().contains("more than 1 GB"));
        let mut start = Vec::new();
        unpack(&bomb[..]).unwrap().take(1000).read_to_end(&mut start).unwrap();
        assert_eq!(start, iter::repeat_n(b'x', 1000).collect::<Vec<_>>());
    }
}
