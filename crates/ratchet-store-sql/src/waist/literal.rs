//! Values as literals in a text for MySQL and MariaDB.
//!
//! Text and bytes are written as hexadecimal digits, so that no character of a value means anything to the parser,
//! whatever the server's settings for quotes and backslashes are.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use crate::waist::value::Value;

/// Writes a value as a literal.
pub(crate) fn write(out: &mut String, value: &Value) {
    let _ = match value {
        Value::Int(Some(int)) => write!(out, "{int}"),
        Value::Real(Some(real)) => write!(out, "{real:e}"),
        Value::Bool(Some(bool)) => write!(out, "{}", u8::from(*bool)),
        Value::Text(Some(text)) | Value::Json(Some(text)) => {
            out.push_str("_utf8mb4 ");
            hex(out, text.as_bytes());
            Ok(())
        }
        Value::Id(Some(id)) => {
            hex(out, id.as_bytes());
            Ok(())
        }
        Value::Time(Some(time)) => {
            let time = time.to_zoned(TimeZone::UTC).datetime();
            write!(
                out,
                "TIMESTAMP'{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}'",
                time.year(),
                time.month(),
                time.day(),
                time.hour(),
                time.minute(),
                time.second(),
                time.subsec_nanosecond() / 1_000
            )
        }
        Value::Int(None)
        | Value::Real(None)
        | Value::Bool(None)
        | Value::Text(None)
        | Value::Json(None)
        | Value::Id(None)
        | Value::Time(None) => out.write_str("NULL"),
        Value::List(_) => panic!("a list has no literal"),
    };
}

fn hex(out: &mut String, bytes: &[u8]) {
    out.push_str("X'");
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn values_become_literals() {
        let check = |value: Value, expected: &str| {
            let mut out = String::new();
            write(&mut out, &value);
            assert_eq!(out, expected);
        };
        check(Value::Int(Some(-7)), "-7");
        check(Value::Int(None), "NULL");
        check(Value::from(true), "1");
        check(Value::from("a'; DROP TABLE x; -- \\"), "_utf8mb4 X'61273b2044524f50205441424c4520783b202d2d205c'");
        check(Value::from(""), "_utf8mb4 X''");
        check(Value::from("é?"), "_utf8mb4 X'c3a93f'");
        check(Value::opt_json(None), "NULL");
        check(Value::Id(Some(Uuid::from_u128(1))), "X'00000000000000000000000000000001'");
        let time: jiff::Timestamp = "2026-01-02T03:04:05.000006Z".parse().unwrap();
        check(Value::from(time), "TIMESTAMP'2026-01-02 03:04:05.000006'");
        check(Value::Real(Some(0.5)), "5e-1");
    }
}
