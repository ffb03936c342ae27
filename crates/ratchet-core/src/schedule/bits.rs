//! A small set of small numbers: the values that one field of an expression names.

/// Numbers from 0 to 63, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bits(u64);

impl Bits {
    /// All numbers of the range.
    pub(super) fn all(first: i8, last: i8) -> Self {
        (first..=last).collect()
    }

    pub(super) fn insert(&mut self, number: i8) {
        self.0 |= 1 << number;
    }

    pub(super) fn has(self, number: i8) -> bool {
        self.0 & (1 << number) != 0
    }

    /// How many there are.
    pub(super) fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// How many are below `number`.
    pub(super) fn len_below(self, number: i8) -> u32 {
        (self.0 & ((1 << number) - 1)).count_ones()
    }

    /// The least that is `number` or above.
    pub(super) fn first_from(self, number: i8) -> Option<i8> {
        let rest = self.0 & (u64::MAX << number);
        if rest == 0 { None } else { i8::try_from(rest.trailing_zeros()).ok() }
    }

    /// The greatest that is `number` or below. Below zero there is none.
    pub(super) fn last_until(self, number: i8) -> Option<i8> {
        if number < 0 {
            return None;
        }
        let rest = self.0 & (u64::MAX >> (63 - number));
        rest.checked_ilog2().and_then(|bit| i8::try_from(bit).ok())
    }
}

impl FromIterator<i8> for Bits {
    fn from_iter<I: IntoIterator<Item = i8>>(numbers: I) -> Self {
        let mut bits = Self::default();
        for number in numbers {
            bits.insert(number);
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_find_their_neighbors() {
        let bits: Bits = [0, 15, 59].into_iter().collect();
        let check = |number, first, last, below| {
            assert_eq!(bits.first_from(number), first, "first from {number}");
            assert_eq!(bits.last_until(number), last, "last until {number}");
            assert_eq!(bits.len_below(number), below, "below {number}");
        };
        check(0, Some(0), Some(0), 0);
        check(1, Some(15), Some(0), 1);
        check(15, Some(15), Some(15), 1);
        check(16, Some(59), Some(15), 2);
        check(59, Some(59), Some(59), 2);
        check(60, None, Some(59), 3);
        assert_eq!(bits.last_until(-1), None);
        assert_eq!(bits.len(), 3);
        assert_eq!(Bits::all(1, 31).len(), 31);
        assert!(bits.has(15) && !bits.has(14));
    }
}
