//! Values as PostgreSQL takes them, in its binary format.

use jiff::Timestamp;
use ratchet_store_sql::Value;
use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo};
use sqlx::{Postgres, Type};

/// One value, or one array. Its type is that of the value, so that NULLs have one too.
pub(crate) struct Param(pub(crate) Value);

/// Microseconds from 1970 to 2000, where PostgreSQL's times begin.
pub(crate) const EPOCH_US: i64 = 946_684_800_000_000;

/// The object ids of a type and of its array; they are the same in every database.
#[derive(Clone, Copy)]
struct TypeIds {
    scalar: u32,
    array: u32,
}

const fn type_ids(value: &Value) -> TypeIds {
    let (scalar, array) = match value {
        Value::Bool(_) => (16, 1_000),
        Value::Int(_) => (20, 1_016),
        Value::Real(_) => (701, 1_022),
        Value::Time(_) => (1_184, 1_185),
        Value::Id(_) => (2_950, 2_951),
        Value::Json(_) => (3_802, 3_807),
        Value::Text(_) | Value::List(_) => (25, 1_009),
    };
    TypeIds { scalar, array }
}

impl Type<Postgres> for Param {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(25))
    }
}

impl Encode<'_, Postgres> for Param {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        if let Value::List(list) = &self.0 {
            encode_array(list, buffer)?;
            return Ok(IsNull::No);
        }
        Ok(if encode_scalar(&self.0, buffer) { IsNull::No } else { IsNull::Yes })
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        let oid = match &self.0 {
            Value::List(list) => list.first().map_or(1_009, |first| type_ids(first).array),
            scalar => type_ids(scalar).scalar,
        };
        Some(PgTypeInfo::with_oid(Oid(oid)))
    }
}

/// Writes a value; `false` if it is NULL.
fn encode_scalar(value: &Value, buffer: &mut Vec<u8>) -> bool {
    match value {
        Value::Int(Some(int)) => buffer.extend(int.to_be_bytes()),
        Value::Real(Some(real)) => buffer.extend(real.to_be_bytes()),
        Value::Bool(Some(bool)) => buffer.push(u8::from(*bool)),
        Value::Text(Some(text)) => buffer.extend(text.as_bytes()),
        Value::Id(Some(id)) => buffer.extend(id.as_bytes()),
        Value::Time(Some(time)) => buffer.extend(since_2000(*time).to_be_bytes()),
        Value::Json(Some(json)) => {
            // The version of the format.
            buffer.push(1);
            buffer.extend(json.as_bytes());
        }
        _ => return false,
    }
    true
}

fn since_2000(time: Timestamp) -> i64 {
    time.as_microsecond() - EPOCH_US
}

/// Dimensions, whether there are NULLs, type; length and first index of the dimension; then the elements.
fn encode_array(list: &[Value], buffer: &mut Vec<u8>) -> Result<(), BoxDynError> {
    let element = list.first().map_or(25, |first| type_ids(first).scalar);
    let has_null = list.iter().any(Value::is_null);
    for header in [1, i32::from(has_null), i32::try_from(element)?, i32::try_from(list.len())?, 1] {
        buffer.extend(header.to_be_bytes());
    }
    for value in list {
        if type_ids(value).scalar != element {
            return Err("the values of a list are of one type".into());
        }
        let at = buffer.len();
        buffer.extend([0; 4]);
        let length = if encode_scalar(value, buffer) { i32::try_from(buffer.len() - at - 4)? } else { -1 };
        buffer[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}
