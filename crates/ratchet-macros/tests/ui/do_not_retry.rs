use ratchet::prelude::*;

#[derive(Debug, thiserror::Error, JobError)]
enum OnAField {
    #[error("field")]
    Field(#[do_not_retry] u8),
}

#[derive(Debug, thiserror::Error, JobError)]
enum BadReason {
    #[error("text")]
    #[do_not_retry = "reason"]
    Equals,
    #[error("text")]
    #[do_not_retry("")]
    Empty,
}

#[derive(JobError)]
union Union {
    field: u8,
}

fn main() {}
