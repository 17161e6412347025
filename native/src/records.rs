//! Walks over the records of one batch, and compares every frame, offset delta and timestamp with the header.
//!
//! The rules are those of `strandline/wire/record_check.py`, which is the oracle of this file in property tests.
//! A window over the body is enough memory, whatever the batch inflates to.

use crate::codecs;

/// The numbers are those of `RecordFault` in `strandline/wire/record_check.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Fault {
    None = 0,
    Header = 1,
    TooFewRecords = 2,
    RecordLength = 3,
    Varint = 4,
    RecordFields = 5,
    OffsetDelta = 6,
    Timestamp = 7,
    FieldLength = 8,
    HeaderCount = 9,
    BytesLeft = 10,
    Codec = 11,
    TooManyBytes = 12,
    TooManyRecords = 13,
}

pub struct Verdict {
    pub fault: Fault,
    /// The number of the record at fault; -1 if the fault is not in one record.
    pub record: i64,
    pub max_timestamp: i64,
    pub min_timestamp: i64,
    pub keyless_count: i64,
    pub inflated_bytes: u64,
}

impl Verdict {
    pub fn of_batch(fault: Fault) -> Verdict {
        Verdict {
            fault,
            record: -1,
            max_timestamp: NO_TIMESTAMP,
            min_timestamp: i64::MAX,
            keyless_count: 0,
            inflated_bytes: 0,
        }
    }
}

pub const HEADER_BYTES: usize = 61;
const NO_TIMESTAMP: i64 = -1;
const MAGIC_AT: usize = 16;
const ATTRIBUTES_AT: usize = 21;
const LAST_OFFSET_DELTA_AT: usize = 23;
const BASE_TIMESTAMP_AT: usize = 27;
const RECORD_COUNT_AT: usize = 57;
const MAGIC: u8 = 2;
const CODEC_MASK: u8 = 7;
/// The smallest record: length, attributes, two deltas, two lengths and a count, of one byte each.
pub const RECORD_BYTES_MIN: i64 = 7;
const VARINT_BYTES_MAX: u32 = 5;
const VARLONG_BYTES_MAX: u32 = 10;

/// The bytes of a batch's records, from first to last.
pub trait Body {
    /// Returns the next byte; `None` after the last one.
    fn byte(&mut self) -> Result<Option<u8>, Fault>;
    /// Passes over so many bytes; returns false if there are fewer.
    fn skip(&mut self, count: u64) -> Result<bool, Fault>;
    /// Returns the number of bytes that were read or passed over.
    fn position(&self) -> u64;
    /// Returns the number of bytes that are left, if it is known without reading them.
    fn left(&self) -> Option<u64>;
    /// Returns the number of bytes of the body, as far as it was read.
    fn total(&self) -> u64;
}

pub struct Plain<'a> {
    data: &'a [u8],
    position: usize,
}

impl Body for Plain<'_> {
    #[inline(always)]
    fn byte(&mut self) -> Result<Option<u8>, Fault> {
        match self.data.get(self.position) {
            Some(&byte) => {
                self.position += 1;
                Ok(Some(byte))
            }
            None => Ok(None),
        }
    }

    #[inline(always)]
    fn skip(&mut self, count: u64) -> Result<bool, Fault> {
        if count > (self.data.len() - self.position) as u64 {
            return Ok(false);
        }
        self.position += count as usize;
        Ok(true)
    }

    #[inline(always)]
    fn position(&self) -> u64 {
        self.position as u64
    }

    #[inline(always)]
    fn left(&self) -> Option<u64> {
        Some((self.data.len() - self.position) as u64)
    }

    fn total(&self) -> u64 {
        self.data.len() as u64
    }
}

/// Returns the verdict on one whole batch, without its CRC.
pub fn check(batch: &[u8], inflated_bytes_max: u64, record_count_max: i64) -> Verdict {
    if batch.len() < HEADER_BYTES || batch[MAGIC_AT] != MAGIC {
        return Verdict::of_batch(Fault::Header);
    }
    let head = Head {
        count: i32_at(batch, RECORD_COUNT_AT) as i64,
        last_offset_delta: i32_at(batch, LAST_OFFSET_DELTA_AT) as i64,
        base_timestamp: i64_at(batch, BASE_TIMESTAMP_AT),
    };
    if head.count < 0 || head.last_offset_delta < 0 || head.count > head.last_offset_delta + 1 {
        return Verdict::of_batch(Fault::Header);
    }
    if head.count > record_count_max {
        return Verdict::of_batch(Fault::TooManyRecords);
    }
    let data = &batch[HEADER_BYTES..];
    let codec = batch[ATTRIBUTES_AT + 1] & CODEC_MASK;
    if head.count == 0 {
        // Compaction leaves such headers, and nothing after them.
        let fault = if data.is_empty() { Fault::None } else { Fault::BytesLeft };
        return Verdict::of_batch(fault);
    }
    if codec == codecs::NONE {
        if head.count > data.len() as i64 / RECORD_BYTES_MIN {
            return Verdict::of_batch(Fault::TooFewRecords);
        }
        return walk(&head, Plain { data, position: 0 });
    }
    match codecs::inflate(codec, data, inflated_bytes_max) {
        Ok(body) => walk(&head, body),
        Err(fault) => Verdict::of_batch(fault),
    }
}

struct Head {
    count: i64,
    last_offset_delta: i64,
    base_timestamp: i64,
}

fn walk<B: Body>(head: &Head, mut body: B) -> Verdict {
    let mut verdict = Verdict::of_batch(Fault::None);
    let mut previous_delta = -1;
    for number in 0..head.count {
        if let Err(fault) = record(head, &mut body, &mut previous_delta, &mut verdict) {
            verdict.fault = fault;
            if !matches!(fault, Fault::Codec | Fault::TooManyBytes | Fault::TooFewRecords) {
                verdict.record = number;
            }
            verdict.inflated_bytes = body.total();
            return verdict;
        }
    }
    match body.byte() {
        Ok(None) => {}
        Ok(Some(_)) => verdict.fault = Fault::BytesLeft,
        Err(fault) => verdict.fault = fault,
    }
    verdict.inflated_bytes = body.total();
    verdict
}

#[inline(always)]
fn record<B: Body>(
    head: &Head,
    body: &mut B,
    previous_delta: &mut i64,
    verdict: &mut Verdict,
) -> Result<(), Fault> {
    let size = match first_varint(body)? {
        Some(size) => size,
        None => return Err(Fault::TooFewRecords),
    };
    if size < 0 || body.left().is_some_and(|left| size as u64 > left) {
        return Err(Fault::RecordLength);
    }
    let end = body.position() + size as u64;
    if size == 0 || body.byte()?.is_none() {
        return Err(if size == 0 { Fault::RecordFields } else { Fault::RecordLength });
    }
    let timestamp_delta = varint(body, end, VARLONG_BYTES_MAX)?;
    let offset_delta = varint(body, end, VARINT_BYTES_MAX)?;
    if offset_delta <= *previous_delta || offset_delta > head.last_offset_delta {
        return Err(Fault::OffsetDelta);
    }
    *previous_delta = offset_delta;
    let timestamp = head.base_timestamp.checked_add(timestamp_delta).ok_or(Fault::Timestamp)?;
    if timestamp > verdict.max_timestamp {
        verdict.max_timestamp = timestamp;
    }
    if timestamp != NO_TIMESTAMP && timestamp < verdict.min_timestamp {
        verdict.min_timestamp = timestamp;
    }
    if !field(body, end)? {
        verdict.keyless_count += 1;
    }
    field(body, end)?;
    let header_count = varint(body, end, VARINT_BYTES_MAX)?;
    if header_count != 0 {
        headers(body, end, header_count)?;
    }
    if body.position() != end {
        return Err(Fault::RecordFields);
    }
    Ok(())
}

fn headers<B: Body>(body: &mut B, end: u64, count: i64) -> Result<(), Fault> {
    // A header has at least two bytes, those of its lengths.
    if count < 0 || count as u64 > (end - body.position()) / 2 {
        return Err(Fault::HeaderCount);
    }
    for _ in 0..count {
        if !field(body, end)? {
            return Err(Fault::FieldLength);
        }
        field(body, end)?;
    }
    Ok(())
}

/// Passes over a length and so many bytes; returns false for a length of -1, which stands for null.
#[inline(always)]
fn field<B: Body>(body: &mut B, end: u64) -> Result<bool, Fault> {
    let size = varint(body, end, VARINT_BYTES_MAX)?;
    if size < 0 {
        return if size == -1 { Ok(false) } else { Err(Fault::FieldLength) };
    }
    if size as u64 > end - body.position() {
        return Err(Fault::FieldLength);
    }
    if body.skip(size as u64)? {
        Ok(true)
    } else {
        Err(Fault::RecordLength)
    }
}

/// Returns the length of the next record; `None` at the end of the body.
#[inline(always)]
fn first_varint<B: Body>(body: &mut B) -> Result<Option<i64>, Fault> {
    let byte = match body.byte()? {
        Some(byte) => byte,
        None => return Ok(None),
    };
    if byte < 0x80 {
        return Ok(Some(unzigzag(byte as u64)));
    }
    rest_of_varint(body, u64::MAX, byte, VARINT_BYTES_MAX, Fault::TooFewRecords).map(Some)
}

#[inline(always)]
fn varint<B: Body>(body: &mut B, end: u64, bytes_max: u32) -> Result<i64, Fault> {
    if body.position() >= end {
        return Err(Fault::RecordFields);
    }
    let byte = body.byte()?.ok_or(Fault::RecordLength)?;
    if byte < 0x80 {
        return Ok(unzigzag(byte as u64));
    }
    rest_of_varint(body, end, byte, bytes_max, Fault::RecordLength)
}

fn rest_of_varint<B: Body>(
    body: &mut B,
    end: u64,
    first: u8,
    bytes_max: u32,
    at_end: Fault,
) -> Result<i64, Fault> {
    let mut value = (first & 0x7F) as u64;
    for number in 1..bytes_max {
        if body.position() >= end {
            return Err(Fault::RecordFields);
        }
        let byte = body.byte()?.ok_or(at_end)?;
        if number + 1 == bytes_max && byte > last_byte_max(bytes_max) {
            return Err(Fault::Varint);
        }
        value |= ((byte & 0x7F) as u64) << (7 * number);
        if byte < 0x80 {
            return Ok(unzigzag(value));
        }
    }
    Err(Fault::Varint)
}

/// The last byte of the longest varint has room for 4 bits of 32, or 1 of 64.
fn last_byte_max(bytes_max: u32) -> u8 {
    if bytes_max == VARINT_BYTES_MAX {
        0x0F
    } else {
        0x01
    }
}

#[inline(always)]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn i32_at(data: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(data[at..at + 4].try_into().unwrap())
}

fn i64_at(data: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(data[at..at + 8].try_into().unwrap())
}
