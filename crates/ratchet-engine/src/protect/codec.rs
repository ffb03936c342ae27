//! How arguments, results and signals are written in the store.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use ratchet_core::{InvalidInput, JsonText, Kind};
use serde::{Deserialize, Serialize};

use crate::guard;
use crate::job::failure::{BoxError, with_sources};
use crate::observe::metrics::Meter;
use crate::submit::admission::is_own_step;

/// Writes arguments, results and the payloads of signals in another way than as plain JSON: encrypted, compressed.
///
/// What it writes is kept in an envelope with its name, `{"$codec": "…", "data": "…"}`. So what was stored before there was
/// a codec, or by one with another name, is told apart and can still be read. Every process that submits jobs, runs them or
/// waits for their results needs it: [`RatchetBuilder::payload_codec`](crate::RatchetBuilder::payload_codec),
/// [`Client::with_payload_codec`](crate::Client::with_payload_codec).
///
/// ```
/// use ratchet_engine::{BoxError, PayloadCodec};
///
/// /// Keeps curious eyes away, and nobody else.
/// struct Backwards;
///
/// impl PayloadCodec for Backwards {
///     fn name(&self) -> &str {
///         "backwards"
///     }
///     fn encode(&self, json: &str) -> Result<String, BoxError> {
///         Ok(json.chars().rev().collect())
///     }
///     fn decode(&self, _name: &str, data: &str) -> Result<String, BoxError> {
///         Ok(data.chars().rev().collect())
///     }
/// }
/// ```
///
/// Params, tags, keys and errors are not written by it: they are there to be found and read. Neither are the arguments of
/// schedules that code declares, which are in the code anyway. If it panics, that is an error like any other.
pub trait PayloadCodec: Send + Sync + 'static {
    /// Its name, as it is stored with what it writes; with a key that changes, the name of the key in use.
    fn name(&self) -> &str;

    /// Whether it can read what was written under this name: its own, unless it says otherwise.
    fn reads(&self, name: &str) -> bool {
        name == self.name()
    }

    /// Whether it writes this; everything unless it says otherwise.
    ///
    /// A condition that looks at a result which the codec writes costs a step of its own, because the store cannot look.
    fn covers(&self, part: Part<'_>) -> bool {
        let _ = part;
        true
    }

    /// What is stored for this JSON text. The limits of arguments, results and signals hold for it too.
    ///
    /// # Errors
    /// Whatever went wrong; arguments are refused with it, and a result fails the job.
    fn encode(&self, json: &str) -> Result<String, BoxError>;

    /// The JSON text that was stored under this name, one that [`reads`](Self::reads) accepts.
    ///
    /// # Errors
    /// Whatever went wrong; a job whose arguments cannot be decoded fails, and is not tried again.
    fn decode(&self, name: &str, data: &str) -> Result<String, BoxError>;
}

/// What a [`PayloadCodec`] may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part<'a> {
    /// The arguments of a job of this kind.
    Arguments(&'a Kind),
    /// The result of a job of this kind.
    Result(&'a Kind),
    /// What a signal says.
    Signal,
}

/// Something in the store that cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// It was written by a codec, and there is none.
    #[error("it was written by the codec {written:?}, and there is none here; add it with .payload_codec(…)")]
    Missing {
        /// The codec's name.
        written: String,
    },
    /// It was written by another codec.
    #[error("it was written by the codec {written:?}, which the one here, {here:?}, does not read")]
    Other {
        /// That codec's name.
        written: String,
        /// The name of the codec that is here.
        here: String,
    },
    /// The codec failed.
    #[error("the codec {written:?} could not decode it: {}", with_sources(&**reason))]
    Failed {
        /// The name under which it was written.
        written: String,
        /// What it said.
        reason: BoxError,
    },
    /// The codec gave something that is not JSON.
    #[error("what the codec {written:?} decoded is not JSON: {reason}")]
    NotJson {
        /// The name under which it was written.
        written: String,
        /// What is wrong with it.
        reason: InvalidInput,
    },
}

/// The codec of a process, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Codec(pub(crate) Option<Arc<dyn PayloadCodec>>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(rename = "$codec", borrow)]
    codec: Cow<'a, str>,
    #[serde(borrow)]
    data: Cow<'a, str>,
}

impl Codec {
    /// Whether the codec writes this. What Ratchet's own steps say to each other has to stay readable for the store.
    pub(crate) fn covers(&self, meter: &Meter, part: Part<'_>) -> bool {
        let own = matches!(part, Part::Arguments(kind) | Part::Result(kind) if is_own_step(kind));
        let asked = |codec: &Arc<dyn PayloadCodec>| {
            // One that cannot tell is taken to cover it: better unreadable than in the open.
            guard::call(meter, guard::PAYLOAD_CODEC, || codec.covers(part)).unwrap_or(true)
        };
        !own && self.0.as_ref().is_some_and(asked)
    }

    /// What is stored for `json`; `field` names it in the error.
    pub(crate) fn seal(
        &self,
        meter: &Meter,
        part: Part<'_>,
        json: &JsonText,
        field: &str,
        bytes_max: usize,
    ) -> Result<JsonText, InvalidInput> {
        let Some(codec) = self.0.as_ref().filter(|_| self.covers(meter, part)) else { return Ok(json.clone()) };
        let written = ask(meter, || Ok((codec.encode(json.as_str())?, codec.name().to_owned())));
        let (data, name) = written.map_err(|error| {
            InvalidInput::new(field, format!("could not be written by the payload codec: {}", with_sources(&*error)))
        })?;
        let envelope = Envelope { codec: name.as_str().into(), data: data.into() };
        JsonText::encode(field, &envelope, bytes_max)
            .map_err(|e| InvalidInput::new(field, format!("{} (as the codec {name:?} wrote it)", e.problem())))
    }

    /// The JSON that is behind what is stored: the same, if no codec wrote it.
    pub(crate) fn open(&self, meter: &Meter, stored: &JsonText) -> Result<JsonText, CodecError> {
        let Some(Envelope { codec: written, data }) = envelope(stored.as_str()) else { return Ok(stored.clone()) };
        let written = written.into_owned();
        let Some(codec) = &self.0 else { return Err(CodecError::Missing { written }) };
        let decoded = ask(meter, || {
            if !codec.reads(&written) {
                return Ok(Err(codec.name().to_owned()));
            }
            codec.decode(&written, &data).map(Ok)
        });
        match decoded {
            Err(reason) => Err(CodecError::Failed { written, reason }),
            Ok(Err(here)) => Err(CodecError::Other { written, here }),
            Ok(Ok(json)) => {
                JsonText::parse("decoded", json, usize::MAX).map_err(|reason| CodecError::NotJson { written, reason })
            }
        }
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Codec").field(&self.0.is_some()).finish()
    }
}

/// Whether this may be, or hold, something that a codec wrote.
pub(crate) fn may_hold_sealed(text: &str) -> bool {
    text.starts_with('{') && text.contains("\"$codec\"")
}

/// Databases order the keys of objects and write blanks in their own way, so the text is read and not compared.
fn envelope(text: &str) -> Option<Envelope<'_>> {
    if may_hold_sealed(text) { serde_json::from_str(text).ok() } else { None }
}

/// Returns the answer of a codec; one that panics has failed.
fn ask<T>(meter: &Meter, ask: impl FnOnce() -> Result<T, BoxError>) -> Result<T, BoxError> {
    guard::call(meter, guard::PAYLOAD_CODEC, ask).unwrap_or_else(|_| Err("it panicked".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds its name in front; misbehaves if it is called so.
    struct Prefix(&'static str);

    impl PayloadCodec for Prefix {
        fn name(&self) -> &str {
            self.0
        }
        fn reads(&self, name: &str) -> bool {
            name == self.0 || name == "older"
        }
        fn covers(&self, part: Part<'_>) -> bool {
            !matches!(part, Part::Result(kind) if kind.as_str() == "open")
        }
        fn encode(&self, json: &str) -> Result<String, BoxError> {
            match self.0 {
                "fails" => Err("no key".into()),
                "panics" => panic!("a codec gone wrong"),
                _ => Ok(format!("{}:{json}", self.0)),
            }
        }
        fn decode(&self, name: &str, data: &str) -> Result<String, BoxError> {
            match data.split_once(':') {
                Some((prefix, json)) if prefix == name => Ok(json.to_owned()),
                _ => Err("another key".into()),
            }
        }
    }

    fn meter() -> Meter {
        Meter::default()
    }

    fn codec(name: &'static str) -> Codec {
        Codec(Some(Arc::new(Prefix(name))))
    }

    fn kind(name: &str) -> Kind {
        Kind::new(name).unwrap()
    }

    fn is_sealed(stored: &JsonText) -> bool {
        envelope(stored.as_str()).is_some()
    }

    #[test]
    fn what_is_sealed_is_opened_however_a_database_writes_it() {
        let json = JsonText::from_store(r#"{"cents":7}"#);
        let codec = codec("a");
        let sealed = codec.seal(&meter(), Part::Arguments(&kind("x")), &json, "payload", 100).unwrap();
        assert_eq!(sealed.as_str(), r#"{"$codec":"a","data":"a:{\"cents\":7}"}"#);
        assert_eq!(codec.open(&meter(), &sealed).unwrap(), json);
        let rewritten = JsonText::from_store(r#"{"data": "a:{\"cents\":7}", "$codec": "a"}"#);
        assert_eq!(codec.open(&meter(), &rewritten).unwrap(), json);
        let older = JsonText::from_store(r#"{"data": "older:7", "$codec": "older"}"#);
        assert_eq!(codec.open(&meter(), &older).unwrap().as_str(), "7");
    }

    #[test]
    fn what_no_codec_wrote_stays_as_it_is() {
        for text in ["null", "[1]", r#"{"cents":7}"#, r#"{"$codec":"a"}"#, r#"{"$codec":"a","data":"x","more":1}"#] {
            let json = JsonText::from_store(text);
            assert_eq!(codec("a").open(&meter(), &json).unwrap(), json);
            assert_eq!(Codec::default().open(&meter(), &json).unwrap(), json);
        }
        let seal = |part: Part<'_>| codec("a").seal(&meter(), part, &JsonText::null(), "x", 100).unwrap();
        assert!(is_sealed(&seal(Part::Signal)));
        for own in ["ratchet.batch", "ratchet.when", "ratchet.when.is-large"] {
            assert!(!is_sealed(&seal(Part::Result(&kind(own)))), "{own}");
        }
        assert!(!is_sealed(&seal(Part::Result(&kind("open")))), "as the codec says");
        assert!(is_sealed(&seal(Part::Arguments(&kind("open")))));
    }

    #[test]
    fn errors_say_what_is_wrong_and_what_to_do() {
        let sealed = |name: &'static str| codec(name).seal(&meter(), Part::Signal, &JsonText::null(), "payload", 100);
        let check = |text: String, part: &str| assert!(text.contains(part), "{text}");
        check(
            Codec::default().open(&meter(), &sealed("a").unwrap()).unwrap_err().to_string(),
            "add it with .payload_codec",
        );
        check(
            codec("b").open(&meter(), &sealed("a").unwrap()).unwrap_err().to_string(),
            "\"a\", which the one here, \"b\"",
        );
        let garbled = JsonText::from_store(r#"{"$codec":"a","data":"b:1"}"#);
        check(codec("a").open(&meter(), &garbled).unwrap_err().to_string(), "could not decode it: another key");
        let not_json = JsonText::from_store(r#"{"$codec":"a","data":"a:{"}"#);
        check(codec("a").open(&meter(), &not_json).unwrap_err().to_string(), "is not JSON");
        check(sealed("fails").unwrap_err().to_string(), "`payload` could not be written by the payload codec: no key");
        check(sealed("panics").unwrap_err().to_string(), "it panicked");
        let long = JsonText::from_store(format!("{:?}", "x".repeat(90)));
        let refused = codec("a").seal(&meter(), Part::Signal, &long, "payload", 100).unwrap_err();
        check(refused.to_string(), "the limit is 100");
        check(refused.to_string(), "as the codec \"a\" wrote it");
    }
}
