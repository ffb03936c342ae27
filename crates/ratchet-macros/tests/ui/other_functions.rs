use ratchet::prelude::*;

#[job]
async unsafe fn raw() {}

#[job(blocking)]
extern "C" fn foreign() {}

#[job(blocking)]
const fn constant() {}

#[job]
struct NotAFunction;

fn main() {}
