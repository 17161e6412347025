//! `strandline_kernel.check` returns a verdict on the records of one batch. It has no state and does no I/O.

mod codecs;
mod records;

use std::panic::catch_unwind;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::records::{Fault, Verdict};

/// Other Python threads run while a batch of this size or more is checked; for smaller ones a switch takes longer.
const DETACH_BYTES_MIN: usize = 16 * 1024;

type VerdictTuple = (i32, i64, i64, i64, i64, u64);

/// check(batch, inflated_bytes_max, record_count_max) -> (fault, record, max_timestamp, min_timestamp,
/// keyless_count, inflated_bytes)
#[pyfunction]
fn check(
    py: Python<'_>,
    batch: PyBuffer<u8>,
    inflated_bytes_max: u64,
    record_count_max: i64,
) -> PyResult<VerdictTuple> {
    if !batch.is_c_contiguous() {
        return Err(PyBufferError::new_err("the batch is not contiguous"));
    }
    // SAFETY: the buffer is contiguous and exported until `batch` is dropped, and its owner does not write to a
    // request that is being handled.
    let bytes = unsafe { std::slice::from_raw_parts(batch.buf_ptr() as *const u8, batch.len_bytes()) };
    let verdict = if bytes.len() < DETACH_BYTES_MIN {
        checked(bytes, inflated_bytes_max, record_count_max)
    } else {
        py.detach(|| checked(bytes, inflated_bytes_max, record_count_max))
    };
    Ok((
        verdict.fault as i32,
        verdict.record,
        verdict.max_timestamp,
        verdict.min_timestamp,
        verdict.keyless_count,
        verdict.inflated_bytes,
    ))
}

/// A decoder that panics on some stream must not end the process: the stream is refused.
fn checked(bytes: &[u8], inflated_bytes_max: u64, record_count_max: i64) -> Verdict {
    catch_unwind(|| records::check(bytes, inflated_bytes_max, record_count_max))
        .unwrap_or_else(|_| Verdict::of_batch(Fault::Codec))
}

#[pymodule]
fn strandline_kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // The form of the call and the meaning of its result; Strandline uses the kernel only if it knows the number.
    module.add("ABI", 1)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(check, module)?)
}
