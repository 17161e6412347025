//! The streams of the four codecs, read through a window, with a bound on what they inflate to.
//!
//! The framing is that of `strandline/wire/compression.py`: gzip members, snappy raw or in xerial's chunks, one lz4 frame of
//! independent blocks (Java refuses linked ones), zstd frames. No byte may follow the stream.

use std::cell::RefCell;
use std::hash::Hasher;
use std::io::Read;

use flate2::bufread::MultiGzDecoder;
use twox_hash::XxHash32;
use zstd_safe::{DCtx, InBuffer, OutBuffer, ResetDirective};

use crate::records::{Body, Fault};

pub const NONE: u8 = 0;
const GZIP: u8 = 1;
const SNAPPY: u8 = 2;
const LZ4: u8 = 3;
const ZSTD: u8 = 4;

const WINDOW_BYTES: usize = 64 * 1024;

const LZ4_MAGIC: [u8; 4] = [0x04, 0x22, 0x4D, 0x18];
/// The bits that a frame's flags must have: version 1 and independent blocks, without dictionary and reserved bit.
const LZ4_FLAGS_MASK: u8 = 0b1110_0011;
const LZ4_FLAGS: u8 = 0b0110_0000;
const LZ4_BLOCK_CHECKSUM: u8 = 0b0001_0000;
const LZ4_CONTENT_SIZE: u8 = 0b0000_1000;
const LZ4_CONTENT_CHECKSUM: u8 = 0b0000_0100;
const LZ4_STORED_BLOCK: u32 = 1 << 31;

const XERIAL_MAGIC: &[u8] = b"\x82SNAPPY\x00";
const XERIAL_HEADER_BYTES: usize = 16;
/// The bound of the inflated size: three bytes of snappy copy 64 bytes at most.
const SNAPPY_RATIO_MAX: u64 = 22;

pub enum Stream<'a> {
    Gzip(Box<MultiGzDecoder<&'a [u8]>>),
    Lz4(Lz4Stream<'a>),
    Zstd(ZstdStream<'a>),
    Snappy(SnappyStream<'a>),
}

pub fn inflate(codec: u8, data: &[u8], bytes_max: u64) -> Result<Inflated<'_>, Fault> {
    let stream = match codec {
        GZIP => Stream::Gzip(Box::new(MultiGzDecoder::new(data))),
        SNAPPY => Stream::Snappy(SnappyStream::new(data)?),
        LZ4 => Stream::Lz4(Lz4Stream::new(data)?),
        ZSTD => Stream::Zstd(ZstdStream::new(data)?),
        _ => return Err(Fault::Codec),
    };
    Ok(Inflated { stream, window: take_window(), start: 0, end: 0, passed: 0, bytes_max, is_over: false })
}

/// A codec's output, of which one window is in memory.
pub struct Inflated<'a> {
    stream: Stream<'a>,
    window: Vec<u8>,
    start: usize,
    end: usize,
    /// The number of bytes in the windows before this one.
    passed: u64,
    bytes_max: u64,
    is_over: bool,
}

impl Inflated<'_> {
    /// Reads the next window; returns false at the end of the stream.
    #[cold]
    fn refill(&mut self) -> Result<bool, Fault> {
        if self.is_over {
            return Ok(false);
        }
        self.passed += self.end as u64;
        self.start = 0;
        self.end = 0;
        let count = self.stream.read(&mut self.window, self.bytes_max - self.passed)?;
        if count == 0 {
            self.is_over = true;
            return Ok(false);
        }
        if count as u64 > self.bytes_max - self.passed {
            return Err(Fault::TooManyBytes);
        }
        self.end = count;
        Ok(true)
    }
}

impl Drop for Inflated<'_> {
    fn drop(&mut self) {
        keep_window(std::mem::take(&mut self.window));
    }
}

impl Body for Inflated<'_> {
    #[inline(always)]
    fn byte(&mut self) -> Result<Option<u8>, Fault> {
        if self.start == self.end && !self.refill()? {
            return Ok(None);
        }
        let byte = self.window[self.start];
        self.start += 1;
        Ok(Some(byte))
    }

    #[inline(always)]
    fn skip(&mut self, mut count: u64) -> Result<bool, Fault> {
        loop {
            let here = (self.end - self.start) as u64;
            if count <= here {
                self.start += count as usize;
                return Ok(true);
            }
            count -= here;
            self.start = self.end;
            if !self.refill()? {
                return Ok(false);
            }
        }
    }

    #[inline(always)]
    fn position(&self) -> u64 {
        self.passed + self.start as u64
    }

    #[inline(always)]
    fn left(&self) -> Option<u64> {
        None
    }

    fn total(&self) -> u64 {
        self.passed + self.end as u64
    }
}

impl Stream<'_> {
    /// Fills the window as far as the stream goes; returns 0 at its end, where no byte may be left.
    fn read(&mut self, window: &mut Vec<u8>, bytes_max: u64) -> Result<usize, Fault> {
        match self {
            Stream::Gzip(stream) => {
                let count = fill(stream.as_mut(), window)?;
                if count == 0 && !stream.get_ref().is_empty() {
                    return Err(Fault::Codec);
                }
                Ok(count)
            }
            Stream::Lz4(stream) => stream.read(window),
            Stream::Zstd(stream) => stream.read(window),
            Stream::Snappy(stream) => stream.read(window, bytes_max),
        }
    }
}

fn fill(stream: &mut dyn Read, window: &mut [u8]) -> Result<usize, Fault> {
    let mut count = 0;
    while count < window.len() {
        match stream.read(&mut window[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(_) => return Err(Fault::Codec),
        }
    }
    Ok(count)
}

thread_local! {
    // Contexts and windows cost more to make than small batches to inflate.
    static ZSTD_CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static WINDOW: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

fn take_window() -> Vec<u8> {
    WINDOW.with(|kept| kept.borrow_mut().take()).unwrap_or_else(|| vec![0; WINDOW_BYTES])
}

fn keep_window(mut window: Vec<u8>) {
    window.resize(WINDOW_BYTES, 0);
    window.shrink_to(WINDOW_BYTES);
    WINDOW.with(|kept| *kept.borrow_mut() = Some(window));
}

pub struct ZstdStream<'a> {
    context: Option<DCtx<'static>>,
    data: &'a [u8],
    position: usize,
    is_frame_complete: bool,
}

impl<'a> ZstdStream<'a> {
    fn new(data: &'a [u8]) -> Result<Self, Fault> {
        let mut context = ZSTD_CONTEXT.with(|kept| kept.borrow_mut().take()).unwrap_or_else(DCtx::create);
        context.reset(ResetDirective::SessionOnly).map_err(|_| Fault::Codec)?;
        Ok(ZstdStream { context: Some(context), data, position: 0, is_frame_complete: false })
    }

    fn read(&mut self, window: &mut Vec<u8>) -> Result<usize, Fault> {
        if self.is_frame_complete && self.position == self.data.len() {
            return Ok(0);
        }
        let context = self.context.as_mut().unwrap();
        let mut count = 0;
        while count < window.len() {
            let mut input = InBuffer::around(&self.data[self.position..]);
            let mut output = OutBuffer::around(&mut window[count..]);
            let hint = context.decompress_stream(&mut output, &mut input).map_err(|_| Fault::Codec)?;
            let read = input.pos();
            let written = output.pos();
            self.position += read;
            count += written;
            self.is_frame_complete = hint == 0;
            if read == 0 && written == 0 {
                break;
            }
            if self.is_frame_complete && self.position == self.data.len() {
                break;
            }
        }
        if count == 0 && !self.is_frame_complete {
            return Err(Fault::Codec); // the stream ends in the middle of a frame
        }
        Ok(count)
    }
}

impl Drop for ZstdStream<'_> {
    fn drop(&mut self) {
        let context = self.context.take();
        ZSTD_CONTEXT.with(|kept| *kept.borrow_mut() = context);
    }
}

pub struct SnappyStream<'a> {
    data: &'a [u8],
    is_xerial: bool,
}

impl<'a> SnappyStream<'a> {
    fn new(data: &'a [u8]) -> Result<Self, Fault> {
        let is_xerial = data.starts_with(XERIAL_MAGIC);
        if is_xerial && data.len() < XERIAL_HEADER_BYTES {
            return Err(Fault::Codec);
        }
        let data = if is_xerial { &data[XERIAL_HEADER_BYTES..] } else { data };
        Ok(SnappyStream { data, is_xerial })
    }

    /// Reads one block; blocks of snappy are inflated whole.
    fn read(&mut self, window: &mut Vec<u8>, bytes_max: u64) -> Result<usize, Fault> {
        loop {
            if self.data.is_empty() {
                return Ok(0);
            }
            let block = self.next_block()?;
            let size = snap::raw::decompress_len(block).map_err(|_| Fault::Codec)? as u64;
            if size > SNAPPY_RATIO_MAX * (block.len() as u64 + 1) {
                return Err(Fault::Codec);
            }
            if size > bytes_max {
                return Err(Fault::TooManyBytes);
            }
            if size as usize > window.len() {
                window.resize(size as usize, 0);
            }
            let count = snap::raw::Decoder::new().decompress(block, window).map_err(|_| Fault::Codec)?;
            if count > 0 {
                return Ok(count);
            }
        }
    }

    fn next_block(&mut self) -> Result<&'a [u8], Fault> {
        if !self.is_xerial {
            return Ok(std::mem::take(&mut self.data));
        }
        if self.data.len() < 4 {
            return Err(Fault::Codec);
        }
        let size = i32::from_be_bytes(self.data[..4].try_into().unwrap());
        let rest = &self.data[4..];
        if size < 0 || size as usize > rest.len() {
            return Err(Fault::Codec);
        }
        let (block, left) = rest.split_at(size as usize);
        self.data = left;
        Ok(block)
    }
}

/// Reads one lz4 frame. Its blocks have 4 MB at most, and are independent.
pub struct Lz4Stream<'a> {
    data: &'a [u8],
    flags: u8,
    block_bytes_max: usize,
    content_bytes: Option<u64>,
    content_hash: XxHash32,
    written: u64,
    is_over: bool,
}

impl<'a> Lz4Stream<'a> {
    fn new(data: &'a [u8]) -> Result<Self, Fault> {
        if data.len() < 7 || data[..4] != LZ4_MAGIC || data[4] & LZ4_FLAGS_MASK != LZ4_FLAGS {
            return Err(Fault::Codec);
        }
        let flags = data[4];
        // Three bits of sizes, from 64 KB on; the others are reserved.
        let block_size = data[5] >> 4;
        if data[5] & 0b1000_1111 != 0 || block_size < 4 {
            return Err(Fault::Codec);
        }
        let descriptor_bytes = if flags & LZ4_CONTENT_SIZE != 0 { 10 } else { 2 };
        let mut stream = Lz4Stream {
            data: &data[4..],
            flags,
            block_bytes_max: 1 << (8 + 2 * block_size),
            content_bytes: None,
            content_hash: XxHash32::with_seed(0),
            written: 0,
            is_over: false,
        };
        let descriptor = stream.take(descriptor_bytes)?;
        if stream.take(1)?[0] != (XxHash32::oneshot(0, descriptor) >> 8) as u8 {
            return Err(Fault::Codec);
        }
        if descriptor_bytes > 2 {
            stream.content_bytes = Some(u64::from_le_bytes(descriptor[2..].try_into().unwrap()));
        }
        Ok(stream)
    }

    /// Reads one block.
    fn read(&mut self, window: &mut Vec<u8>) -> Result<usize, Fault> {
        loop {
            if self.is_over {
                return Ok(0);
            }
            let size = self.take_u32()?;
            if size == 0 {
                self.finish()?;
                continue;
            }
            let count = self.block(size, window)?;
            self.written += count as u64;
            if self.flags & LZ4_CONTENT_CHECKSUM != 0 {
                self.content_hash.write(&window[..count]);
            }
            if count > 0 {
                return Ok(count);
            }
        }
    }

    fn block(&mut self, size: u32, window: &mut Vec<u8>) -> Result<usize, Fault> {
        let block = self.take((size & !LZ4_STORED_BLOCK) as usize)?;
        if block.len() > self.block_bytes_max {
            return Err(Fault::Codec);
        }
        if self.flags & LZ4_BLOCK_CHECKSUM != 0 && self.take_u32()? != XxHash32::oneshot(0, block) {
            return Err(Fault::Codec);
        }
        if window.len() < self.block_bytes_max {
            window.resize(self.block_bytes_max, 0);
        }
        if size & LZ4_STORED_BLOCK != 0 {
            window[..block.len()].copy_from_slice(block);
            return Ok(block.len());
        }
        lz4_flex::block::decompress_into(block, &mut window[..self.block_bytes_max]).map_err(|_| Fault::Codec)
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.is_over = true;
        if self.flags & LZ4_CONTENT_CHECKSUM != 0 && self.take_u32()? != self.content_hash.finish_32() {
            return Err(Fault::Codec);
        }
        if !self.data.is_empty() || self.content_bytes.is_some_and(|expected| expected != self.written) {
            return Err(Fault::Codec);
        }
        Ok(())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        if count > self.data.len() {
            return Err(Fault::Codec);
        }
        let (taken, left) = self.data.split_at(count);
        self.data = left;
        Ok(taken)
    }

    fn take_u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().unwrap()))
    }
}
