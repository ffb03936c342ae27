//! Lists in statements: few different lengths, so that few texts are prepared.

use crate::waist::value::Value;

/// Most entries of one list.
pub(crate) const LIST_MAX: usize = 256;

/// Most bytes of values in one statement, unless a single row has more. MariaDB takes 16 MiB, and twice as much as text.
pub(crate) const BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Lists up to this length have a text of their own.
const EXACT_MAX: usize = 64;

/// How many rows the next statement takes of a list that cannot be padded.
///
/// Short lists go as they are: a busy node settles as many jobs as it has slots, again and again. Longer ones are cut to
/// a power of two or one and a half times it: 200 rows are 192 + 8, two statements instead of the three of plain powers.
pub(crate) fn chunk_size(len: usize) -> usize {
    let len = len.min(LIST_MAX);
    if len <= EXACT_MAX {
        return len;
    }
    let power = 1 << len.ilog2();
    if power >= 2 && len >= power + power / 2 { power + power / 2 } else { power }
}

/// The length to which a list is padded.
pub(crate) fn padded_len(len: usize) -> usize {
    len.next_power_of_two()
}

/// The values of a statement with a list of keys, padded by repeating the last one, and the list's length.
pub(crate) fn padded<K: Clone + Into<Value>>(before: &[Value], keys: &[K]) -> (usize, Vec<Value>) {
    let count = padded_len(keys.len());
    let mut values = Vec::with_capacity(before.len() + count);
    values.extend_from_slice(before);
    values.extend(keys.iter().cloned().map(Into::into));
    if let Some(last) = keys.last() {
        let last: Value = last.clone().into();
        values.resize(before.len() + count, last);
    }
    (count, values)
}

/// Rows, one after the other, turned into a list for each column.
pub(crate) fn columns(values: Vec<Value>, rows: usize) -> Vec<Value> {
    let width = values.len() / rows.max(1);
    let mut columns: Vec<Vec<Value>> = (0..width).map(|_| Vec::with_capacity(rows)).collect();
    for (index, value) in values.into_iter().enumerate() {
        columns[index % width].push(value);
    }
    columns.into_iter().map(Value::List).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_into_few_lengths() {
        let cut = |mut len: usize| {
            let mut sizes = Vec::new();
            while len > 0 {
                sizes.push(chunk_size(len));
                len -= chunk_size(len);
            }
            sizes
        };
        assert_eq!(cut(1), [1]);
        assert_eq!(cut(3), [3]);
        assert_eq!(cut(50), [50]);
        assert_eq!(cut(100), [96, 4]);
        assert_eq!(cut(200), [192, 8]);
        assert_eq!(cut(1_000), [256, 256, 256, 192, 40]);
    }

    #[test]
    fn rows_become_columns() {
        let values = vec!["a".into(), Value::Int(Some(1)), "b".into(), Value::Int(None)];
        let expected =
            [Value::List(vec!["a".into(), "b".into()]), Value::List(vec![Value::Int(Some(1)), Value::Int(None)])];
        assert_eq!(columns(values, 2), expected);
    }

    #[test]
    fn keys_are_padded_with_the_last() {
        let (count, values) = padded(&[Value::Int(Some(1))], &["a", "b", "c"]);
        assert_eq!(count, 4);
        assert_eq!(values, [Value::Int(Some(1)), "a".into(), "b".into(), "c".into(), "c".into()]);
    }
}
