//! A cron expression as Quartz writes it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bits::Bits;
use super::days::Days;
use super::field::{Field, HOUR, MINUTE, MONTH, SECOND, YEAR};
use super::pattern::Pattern;
use crate::invalid::InvalidInput;
use crate::limits;

/// A cron expression as Quartz writes it: second, minute, hour, day-of-month, month, day-of-week and, if wanted, year.
///
/// | field | values | special |
/// |---|---|---|
/// | second, minute | 0–59 | `, - * /` |
/// | hour | 0–23 | `, - * /` |
/// | day-of-month | 1–31 | `, - * / ? L W` |
/// | month | 1–12, JAN–DEC | `, - * /` |
/// | day-of-week | 1–7 with 1 for Sunday, SUN–SAT | `, - * / ? L #` |
/// | year | 1970–2199, or left away | `, - * /` |
///
/// - `0/15` is every 15 from 0 to the end of the field, `*/15` the same from its start, `10-40/10` within the range. A
///   range may run over the end: `22-2` in hours, `FRI-MON`, `NOV-FEB`.
/// - `L` is the last day of the month, `L-3` the third before it, `LW` the last weekday (Monday to Friday), `15W` the
///   weekday nearest to the 15th in the same month. A month that lacks the day, as `31W` does in April, is passed by.
/// - `6L` or `FRIL` is the last Friday of the month, `6#3` or `FRI#3` the third. A lone `L` as day-of-week is Saturday.
/// - Days are named by day-of-month or by day-of-week, and the other is `?`. A `*` there is read as `?`.
///
/// Upper and lower case are the same. The text is kept as it was given. Two expressions are equal if their texts are.
///
/// ```
/// use ratchet_core::schedule::CronExpression;
///
/// let weekdays_at_nine = CronExpression::new("0 0 9 ? * MON-FRI")?;
/// assert_eq!(weekdays_at_nine.to_string(), "0 0 9 ? * MON-FRI");
///
/// let refused = CronExpression::new("0 60 9 ? * MON-FRI").unwrap_err();
/// assert_eq!(refused.to_string(), "`cron minute` holds \"60\"; allowed are 0 to 59");
///
/// let refused = CronExpression::new("0 0 9 30 FEB ?").unwrap_err();
/// assert_eq!(refused.to_string(), "`cron` is \"0 0 9 30 FEB ?\", which never fires: no year has such a day");
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CronExpression(Arc<Parsed>);

struct Parsed {
    text: String,
    pattern: Pattern,
}

impl CronExpression {
    /// The longest expression, in characters.
    pub const CHARS_MAX: usize = 255;

    /// Reads an expression. Refuses what is no expression, and what can never fire.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidInput> {
        let text = text.as_ref();
        limits::check_text("cron", text, Self::CHARS_MAX)?;
        let pattern = parse(&text.to_ascii_uppercase())?;
        if !pattern.ever_fires() {
            return Err(InvalidInput::new("cron", format!("is {text:?}, which never fires: no year has such a day")));
        }
        Ok(Self(Arc::new(Parsed { text: text.to_owned(), pattern })))
    }

    /// The text, as it was given.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    pub(super) fn pattern(&self) -> &Pattern {
        &self.0.pattern
    }
}

fn parse(text: &str) -> Result<Pattern, InvalidInput> {
    const SHAPE: &str = "second minute hour day-of-month month day-of-week, and a year if wanted";
    let fields: Vec<&str> = text.split_whitespace().collect();
    let (second, minute, hour, of_month, month, of_week, year) = match fields[..] {
        [second, minute, hour, of_month, month, of_week] => (second, minute, hour, of_month, month, of_week, "*"),
        [second, minute, hour, of_month, month, of_week, year] => {
            (second, minute, hour, of_month, month, of_week, year)
        }
        [_, _, _, _, _] => {
            let problem = format!("has 5 fields, and there must be 6 or 7: {SHAPE}; put a 0 in front for the second");
            return Err(InvalidInput::new("cron", problem));
        }
        _ => {
            let problem = format!("has {} fields, and there must be 6 or 7: {SHAPE}", fields.len());
            return Err(InvalidInput::new("cron", problem));
        }
    };
    Ok(Pattern {
        seconds: bits(&SECOND, second)?,
        minutes: bits(&MINUTE, minute)?,
        hours: bits(&HOUR, hour)?,
        days: Days::parse(of_month, of_week)?,
        months: bits(&MONTH, month)?,
        years: YEAR.list(year)?.into_iter().collect(),
    })
}

fn bits(field: &Field, text: &str) -> Result<Bits, InvalidInput> {
    Ok(field.list(text)?.into_iter().filter_map(|value| i8::try_from(value).ok()).collect())
}

impl PartialEq for CronExpression {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for CronExpression {}

impl Hash for CronExpression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for CronExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for CronExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl FromStr for CronExpression {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        Self::new(text)
    }
}

impl TryFrom<String> for CronExpression {
    type Error = InvalidInput;
    fn try_from(text: String) -> Result<Self, InvalidInput> {
        Self::new(text)
    }
}

impl From<CronExpression> for String {
    fn from(expression: CronExpression) -> String {
        expression.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_expressions_are_taken_and_given_back_as_they_were() {
        for text in [
            "0 0 12 * * ?",
            "0 15 10 ? * *",
            "0 15 10 * * ? *",
            "0 15 10 * * ? 2005",
            "0 0/5 14,18 * * ?",
            "0 10,44 14 ? 3 WED",
            "0 15 10 ? * 6L 2002-2005",
            "0 15 10 ? * 6#3",
            "0 0 12 1/5 * ?",
            "0 0 0 29 2 ? 2096",
            "* * * * * *",
            "0 0 0 l-3w jan-mar ?",
            "  0  0\t3 * * ?  ",
            "0 0 22-2 ? nov-feb Fri-Mon",
        ] {
            let expression = CronExpression::new(text).unwrap();
            assert_eq!(expression.to_string(), text);
            let json = serde_json::to_string(&expression).unwrap();
            assert_eq!(json, serde_json::to_string(text).unwrap());
            assert_eq!(serde_json::from_str::<CronExpression>(&json).unwrap(), expression);
        }
    }

    #[test]
    fn bad_expressions_are_refused_with_the_field_the_finding_and_what_is_allowed() {
        let check = |text: &str, expected: &str| {
            let refused = CronExpression::new(text).map(|_| ()).unwrap_err().to_string();
            assert_eq!(refused, expected, "{text:?}");
        };
        let shape = "second minute hour day-of-month month day-of-week, and a year if wanted";
        let of_month = "allowed are 1 to 31, L (the last day), L-3, LW (the last weekday), \
                        15W (the weekday nearest to the 15th) and ?";
        let of_week = "allowed are 1 (SUN) to 7 (SAT), SUN to SAT, 6L or FRIL (the last Friday), \
                       6#3 or FRI#3 (the third Friday) and ?";

        check("", "`cron` is empty; give 1 to 255 characters");
        check(&"0 ".repeat(128), "`cron` is 256 characters long; the limit is 255");
        check("   ", &format!("`cron` has 0 fields, and there must be 6 or 7: {shape}"));
        check("@daily", &format!("`cron` has 1 fields, and there must be 6 or 7: {shape}"));
        check(
            "0 3 * * ?",
            &format!("`cron` has 5 fields, and there must be 6 or 7: {shape}; put a 0 in front for the second"),
        );
        check("0 0 3 * * ? * *", &format!("`cron` has 8 fields, and there must be 6 or 7: {shape}"));

        check("60 0 0 * * ?", "`cron second` holds \"60\"; allowed are 0 to 59");
        check("? 0 0 * * ?", "`cron second` holds \"?\"; allowed are 0 to 59");
        check("-5 0 0 * * ?", "`cron second` holds \"-5\"; allowed are 0 to 59");
        check("+5 0 0 * * ?", "`cron second` holds \"+5\"; allowed are 0 to 59");
        check("0 5- 0 * * ?", "`cron minute` holds \"5-\"; allowed are 0 to 59");
        check("0 1,,2 0 * * ?", "`cron minute` holds \"\"; allowed are 0 to 59");
        check("0 1-2-3 0 * * ?", "`cron minute` holds \"1-2-3\"; allowed are 0 to 59");
        check("0 0/0 0 * * ?", "`cron minute` holds the step \"0\"; a step is 1 to 59");
        check("0 0/90 0 * * ?", "`cron minute` holds the step \"90\"; a step is 1 to 59");
        check("0 0/ 0 * * ?", "`cron minute` holds the step \"\"; a step is 1 to 59");
        check("0 0/5/5 0 * * ?", "`cron minute` holds the step \"5/5\"; a step is 1 to 59");
        check("0 99999999999 0 * * ?", "`cron minute` holds \"99999999999\"; allowed are 0 to 59");
        check("0 0 24 * * ?", "`cron hour` holds \"24\"; allowed are 0 to 23");
        check("0 0 0/24 * * ?", "`cron hour` holds the step \"24\"; a step is 1 to 23");
        check("0 0 0 0 * ?", &format!("`cron day-of-month` holds \"0\"; {of_month}"));
        check("0 0 0 32 * ?", &format!("`cron day-of-month` holds \"32\"; {of_month}"));
        check("0 0 0 W * ?", &format!("`cron day-of-month` holds \"W\"; {of_month}"));
        check("0 0 0 32W * ?", &format!("`cron day-of-month` holds \"32W\"; {of_month}"));
        check("0 0 0 1-5W * ?", &format!("`cron day-of-month` holds \"1-5W\"; {of_month}"));
        check("0 0 0 L- * ?", &format!("`cron day-of-month` holds \"L-\"; {of_month}"));
        check("0 0 0 L-31 * ?", &format!("`cron day-of-month` holds \"L-31\"; {of_month}"));
        check("0 0 0 L3 * ?", &format!("`cron day-of-month` holds \"L3\"; {of_month}"));
        check("0 0 0 ?,5 * ?", &format!("`cron day-of-month` holds \"?\"; {of_month}"));
        check("0 0 0 1 13 ?", "`cron month` holds \"13\"; allowed are 1 to 12 and JAN to DEC");
        check("0 0 0 1 January ?", "`cron month` holds \"JANUARY\"; allowed are 1 to 12 and JAN to DEC");
        check("0 0 0 1 ? ?", "`cron month` holds \"?\"; allowed are 1 to 12 and JAN to DEC");
        check("0 0 0 ? * 0", &format!("`cron day-of-week` holds \"0\"; {of_week}"));
        check("0 0 0 ? * 8", &format!("`cron day-of-week` holds \"8\"; {of_week}"));
        check("0 0 0 ? * 2-6L", &format!("`cron day-of-week` holds \"2-6L\"; {of_week}"));
        check("0 0 0 ? * 8#1", &format!("`cron day-of-week` holds \"8#1\"; {of_week}"));
        check(
            "0 0 0 ? * FRI#6",
            "`cron day-of-week` holds \"FRI#6\"; after # comes which one of the month it is, 1 to 5",
        );
        check(
            "0 0 0 ? * ?",
            "`cron day-of-week` is ? beside a day-of-month of ?, so no day is named; \
             put * in one of the two for every day",
        );
        check(
            "0 0 0 13 * FRI",
            "`cron day-of-week` is \"FRI\" beside a day-of-month of \"13\"; \
             name days in one of the two and put ? in the other",
        );
        check("0 0 0 1 1 ? 1969", "`cron year` holds \"1969\"; allowed are 1970 to 2199");
        check("0 0 0 1 1 ? 2200", "`cron year` holds \"2200\"; allowed are 1970 to 2199");
        check("0 0 0 1 1 ? 2030-2026", "`cron year` holds the range \"2030-2026\", which ends before it begins");

        let never = |text: &str| format!("`cron` is {text:?}, which never fires: no year has such a day");
        for text in
            ["0 0 0 30 2 ?", "0 0 0 31 4,6,9,11 ?", "0 0 0 29 2 ? 2100", "0 0 0 ? 2 MON#5 2026", "0 0 0 L-30 4 ?"]
        {
            check(text, &never(text));
        }
    }
}
