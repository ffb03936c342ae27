//! Tests that measure time, or count what the whole server does: nothing else runs beside them.

mod log_bytes;
mod resume_points;
