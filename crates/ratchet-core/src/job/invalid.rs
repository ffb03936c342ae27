//! Refused input: which field, what is wrong with it, and the limit.

/// An input that was refused before anything was written.
///
/// Its text names the field and the limit, so that it can be shown to the person who gave the input.
///
/// ```
/// use ratchet_core::QueueName;
///
/// let refused = QueueName::new("Reports").unwrap_err();
/// assert_eq!(refused.field(), "queue");
/// assert_eq!(refused.to_string(), "`queue` holds 'R' at position 1; only a-z, 0-9, '.', '_' and '-' are allowed");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct InvalidInput {
    field: String,
    problem: String,
}

impl InvalidInput {
    /// Says what is wrong with `field`; `problem` continues the sentence "`field` …" and names the limit.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// The name of the refused field, as the builder or option spells it.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong with the field, with the limit in the text.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}
