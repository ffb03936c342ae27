use ratchet::prelude::*;

#[derive(serde::Serialize, serde::Deserialize)]
struct SearchResult;

type Outcome<T> = Result<T, String>;

#[job]
async fn search() -> SearchResult {
    SearchResult
}

#[job]
async fn hidden() -> Outcome<u8> {
    Ok(1)
}

#[job]
async fn opaque() -> impl std::fmt::Display {
    1
}

#[job]
async fn borrowed() -> &'static str {
    "x"
}

fn main() {}
