//! One field of a cron expression: its values, ranges and steps.

use crate::invalid::InvalidInput;

/// What a field may hold.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    min: i16,
    max: i16,
    /// Words for the values, the first for `min`.
    words: &'static [&'static str],
    /// Whether a range may run past the end and go on at the start, as `22-2` does in hours.
    wraps: bool,
    /// The end of the sentence that refuses a value.
    allowed: &'static str,
}

pub(super) const SECOND: Field = Field::numbers("second", 59, "0 to 59");
pub(super) const MINUTE: Field = Field::numbers("minute", 59, "0 to 59");
pub(super) const HOUR: Field = Field::numbers("hour", 23, "0 to 23");
pub(super) const DAY_OF_MONTH: Field = Field {
    name: "day-of-month",
    min: 1,
    max: 31,
    words: &[],
    wraps: true,
    allowed: "1 to 31, L (the last day), L-3, LW (the last weekday), 15W (the weekday nearest to the 15th) and ?",
};
pub(super) const MONTH: Field = Field {
    name: "month",
    min: 1,
    max: 12,
    words: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    wraps: true,
    allowed: "1 to 12 and JAN to DEC",
};
pub(super) const DAY_OF_WEEK: Field = Field {
    name: "day-of-week",
    min: 1,
    max: 7,
    words: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    wraps: true,
    allowed: "1 (SUN) to 7 (SAT), SUN to SAT, 6L or FRIL (the last Friday), 6#3 or FRI#3 (the third Friday) and ?",
};
pub(super) const YEAR: Field =
    Field { name: "year", min: 1970, max: 2199, words: &[], wraps: false, allowed: "1970 to 2199" };

impl Field {
    const fn numbers(name: &'static str, max: i16, allowed: &'static str) -> Self {
        Self { name, min: 0, max, words: &[], wraps: true, allowed }
    }

    /// The values of a list such as `1,5-7,20/5`.
    pub(super) fn list(&self, text: &str) -> Result<Vec<i16>, InvalidInput> {
        let mut values = Vec::new();
        for item in text.split(',') {
            values.extend(self.item(item)?);
        }
        Ok(values)
    }

    /// The values of one item of a list: `*`, `5`, `5-7`, and each of them with a step. A step after a single value
    /// runs from there to the end of the field.
    pub(super) fn item(&self, item: &str) -> Result<Vec<i16>, InvalidInput> {
        let (base, step) = match item.split_once('/') {
            None => (item, None),
            Some((base, step)) => (base, Some(self.step(step)?)),
        };
        let (first, last) = match base.split_once('-') {
            _ if base == "*" || (base.is_empty() && step.is_some()) => (self.min, self.max),
            Some((first, last)) => (self.value(first, item)?, self.value(last, item)?),
            None => {
                let first = self.value(base, item)?;
                (first, if step.is_some() { self.max } else { first })
            }
        };
        if last < first && !self.wraps {
            return Err(self.problem(format!("holds the range {base:?}, which ends before it begins")));
        }
        let size = self.max - self.min + 1;
        let length = (last - first).rem_euclid(size);
        let steps = (0..=length).step_by(step.unwrap_or(1));
        Ok(steps.map(|offset| self.min + (first - self.min + offset) % size).collect())
    }

    /// A single number or word, as a part of `item`.
    pub(super) fn value(&self, text: &str, item: &str) -> Result<i16, InvalidInput> {
        let word = self.words.iter().position(|word| *word == text);
        let offset = word.and_then(|at| i16::try_from(at).ok());
        let value = offset.map_or_else(|| number(text), |offset| Some(self.min + offset));
        value.filter(|value| (self.min..=self.max).contains(value)).ok_or_else(|| self.refused(item))
    }

    fn step(&self, text: &str) -> Result<usize, InvalidInput> {
        // As in Quartz: a step of the field's whole length or more is a slip, such as `0/90` for an hour and a half.
        let max = self.max.min(self.max - self.min + 1);
        let step = number(text).filter(|step| (1..=max).contains(step));
        step.and_then(|step| usize::try_from(step).ok())
            .ok_or_else(|| self.problem(format!("holds the step {text:?}; a step is 1 to {max}")))
    }

    /// Refuses a part of the field.
    pub(super) fn refused(&self, found: &str) -> InvalidInput {
        self.problem(format!("holds {found:?}; allowed are {}", self.allowed))
    }

    /// Refuses the field; `problem` goes on from its name.
    pub(super) fn problem(&self, problem: impl Into<String>) -> InvalidInput {
        InvalidInput::new(format!("cron {}", self.name), problem)
    }
}

/// A number of plain digits; without the signs that `parse` would take.
pub(super) fn number(text: &str) -> Option<i16> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_name_their_values() {
        let check = |field: &Field, text, expected: &[i16]| {
            assert_eq!(field.list(text).unwrap(), expected, "{} {text}", field.name);
        };
        check(&MINUTE, "7", &[7]);
        check(&MINUTE, "0/15", &[0, 15, 30, 45]);
        check(&MINUTE, "5/20", &[5, 25, 45]);
        check(&MINUTE, "*/20", &[0, 20, 40]);
        check(&MINUTE, "/20", &[0, 20, 40]);
        check(&MINUTE, "10-40/10", &[10, 20, 30, 40]);
        check(&MINUTE, "59/59", &[59]);
        check(&MINUTE, "3,1,5-6", &[3, 1, 5, 6]);
        check(&HOUR, "22-2", &[22, 23, 0, 1, 2]);
        check(&HOUR, "22-2/3", &[22, 1]);
        check(&MONTH, "NOV-FEB", &[11, 12, 1, 2]);
        check(&MONTH, "*/5", &[1, 6, 11]);
        check(&DAY_OF_WEEK, "FRI-MON", &[6, 7, 1, 2]);
        check(&DAY_OF_WEEK, "MON/2", &[2, 4, 6]);
        check(&DAY_OF_WEEK, "*", &[1, 2, 3, 4, 5, 6, 7]);
        check(&DAY_OF_MONTH, "*/10", &[1, 11, 21, 31]);
        check(&YEAR, "2026-2032/3", &[2026, 2029, 2032]);
        assert_eq!(YEAR.list("*").unwrap().len(), 230);
    }
}
