//! Counts as people say them.

/// `1 job`, `2 jobs`, `0 jobs`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_not_many() {
        let check = |count, expected: &str| assert_eq!(counted(count, "child", "children"), expected);
        check(0, "0 children");
        check(1, "1 child");
        check(2, "2 children");
    }
}
