//! What a user of the facade sees: the macros' forms, their errors, and jobs that really run.

#[cfg(feature = "sqlite")]
mod breakers;
mod error_texts;
mod job_error;
mod job_forms;
mod node;
#[cfg(feature = "sqlite")]
mod rules;
#[cfg(feature = "sqlite")]
mod transactions;
