//! The suite on the store in memory, and on stores that are broken on purpose.

mod broken;
mod flowing;
mod memory;
