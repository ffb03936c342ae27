//! JSON text that was checked when it was made.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::invalid::InvalidInput;

/// A JSON value as text: valid, and without NUL characters, which not every database can hold.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Serializes `value`, refusing NUL characters and text over `bytes_max`.
    ///
    /// `field` names the value in the error.
    pub fn encode<T: Serialize + ?Sized>(field: &str, value: &T, bytes_max: usize) -> Result<Self, InvalidInput> {
        let text = serde_json::to_string(value)
            .map_err(|error| InvalidInput::new(field, format!("cannot be written as JSON: {error}")))?;
        Self::check(field, text, bytes_max)
    }

    /// Takes JSON text as it is, refusing text that is not JSON, holds NUL characters or is over `bytes_max`.
    pub fn parse(field: &str, text: impl Into<String>, bytes_max: usize) -> Result<Self, InvalidInput> {
        let text = text.into();
        serde_json::from_str::<&RawValue>(&text)
            .map_err(|error| InvalidInput::new(field, format!("is not JSON: {error}")))?;
        Self::check(field, text, bytes_max)
    }

    fn check(field: &str, text: String, bytes_max: usize) -> Result<Self, InvalidInput> {
        if text.len() > bytes_max {
            return Err(InvalidInput::new(
                field,
                format!(
                    "is {} bytes of JSON; the limit is {bytes_max}, store large data elsewhere and pass a reference",
                    text.len()
                ),
            ));
        }
        if escaped_nul(&text).is_some() {
            return Err(InvalidInput::new(field, "holds a NUL character (\\u0000); NUL cannot be stored, remove it"));
        }
        Ok(Self(text.into()))
    }

    /// Takes text that a store wrote earlier, unchecked.
    pub fn from_store(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    /// `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the same value, however it is written: databases order keys and write numbers in their own way.
    pub fn means_the_same(&self, other: &Self) -> bool {
        let parsed = |text: &Self| serde_json::from_str::<Value>(text.as_str());
        self == other || matches!((parsed(self), parsed(other)), (Ok(a), Ok(b)) if same_value(&a, &b))
    }

    /// Reads the value.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

/// Numbers are the same by value: 100 and 1e2 are.
fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        _ => a == b,
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for JsonText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // As the JSON it is, not as a string that holds JSON.
        serde_json::from_str::<&RawValue>(&self.0).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(raw.get().into()))
    }
}

/// Replaces NUL characters in the strings of a JSON text by U+FFFD.
///
/// For results, which are recorded on the job's behalf and must not fail over one character.
pub fn without_nul(text: String) -> String {
    let Some(mut at) = escaped_nul(&text) else { return text };
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text.as_str();
    loop {
        cleaned.push_str(&rest[..at]);
        cleaned.push_str("\\ufffd");
        rest = &rest[at + 6..];
        match escaped_nul(rest) {
            Some(next) => at = next,
            None => break,
        }
    }
    cleaned.push_str(rest);
    cleaned
}

/// Where an escape of NUL begins; a backslash that is itself escaped starts none.
fn escaped_nul(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
        } else if bytes[at..].starts_with(b"\\u0000") {
            return Some(at);
        } else {
            at += 2;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_is_refused_in_any_string_but_an_escaped_backslash_is_not_nul() {
        let refused = JsonText::encode("payload", &"a\0b", 100).unwrap_err();
        assert!(refused.to_string().contains("NUL"), "{refused}");
        let accepted = JsonText::encode("payload", "a\\u0000b", 100).unwrap();
        assert_eq!(accepted.decode::<String>().unwrap(), "a\\u0000b");
    }

    #[test]
    fn size_is_checked_at_the_limit_and_one_past_it() {
        assert!(JsonText::encode("payload", &"x".repeat(98), 100).is_ok());
        let refused = JsonText::encode("payload", &"x".repeat(99), 100).unwrap_err();
        assert_eq!(refused.field(), "payload");
        assert!(refused.to_string().contains("101 bytes") && refused.to_string().contains("100"), "{refused}");
    }

    #[test]
    fn nul_in_a_result_is_replaced() {
        let check = |given: &str, expected: &str| assert_eq!(without_nul(given.to_owned()), expected);
        check(r#""plain""#, r#""plain""#);
        check(r#""a\u0000b\u0000""#, r#""a\ufffdb\ufffd""#);
        check(r#""a\\u0000""#, r#""a\\u0000""#);
        check(r#""\\\u0000""#, r#""\\\ufffd""#);
    }

    #[test]
    fn text_nests_as_json_and_comes_back() {
        let inner = JsonText::encode("payload", &serde_json::json!({"a": [1, "x"]}), 100).unwrap();
        let outer = serde_json::to_string(&vec![inner.clone()]).unwrap();
        assert_eq!(outer, r#"[{"a":[1,"x"]}]"#);
        assert_eq!(serde_json::from_str::<Vec<JsonText>>(&outer).unwrap(), vec![inner]);
    }

    #[test]
    fn the_same_value_may_be_written_in_many_ways() {
        let check = |a: &str, b: &str, same| {
            assert_eq!(JsonText::from_store(a).means_the_same(&JsonText::from_store(b)), same, "{a} {b}");
        };
        check(r#"{ "b": 1, "a": [1e2] }"#, r#"{"a":[100],"b":1.0}"#, true);
        check(r#""\u00fc""#, "\"ü\"", true);
        check("[1, 2]", "[2, 1]", false);
        check(r#"{"a":1}"#, r#"{"a":1,"b":null}"#, false);
        check("9007199254740993", "9007199254740992", false);
        check("1", "\"1\"", false);
    }
}
