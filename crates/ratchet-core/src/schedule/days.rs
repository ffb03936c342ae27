//! Which days of a month an expression names.

use jiff::civil::Date;

use super::bits::Bits;
use super::field::{DAY_OF_MONTH, DAY_OF_WEEK, number};
use crate::invalid::InvalidInput;

/// The days that an expression names, by one of its two day fields.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Days {
    Every,
    OfMonth { days: Bits, special: Vec<MonthDay> },
    OfWeek { days: Bits, special: Vec<WeekDay> },
}

/// A day that has another number in every month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MonthDay {
    /// `L` and `L-3`: so many days before the last.
    BeforeLast(i8),
    /// `15W`: the weekday nearest to this day, in the same month.
    NearestTo(i8),
    /// `LW` and `L-3W`: the weekday nearest to so many days before the last.
    NearestToBeforeLast(i8),
}

/// One certain weekday of a month; Sunday is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WeekDay {
    /// `6L`: the last one.
    Last(i8),
    /// `6#3`: the third one.
    Nth(i8, i8),
}

const SATURDAY: i8 = 7;
const SUNDAY: i8 = 1;

impl Days {
    /// Reads both day fields. One of them must leave the day to the other: by `?`, or by `*`, which says the same in
    /// other dialects and can mean nothing else here.
    pub(super) fn parse(of_month: &str, of_week: &str) -> Result<Self, InvalidInput> {
        let open = |text: &str| matches!(text, "*" | "?");
        match (of_month, of_week) {
            ("?", "?") => Err(DAY_OF_WEEK.problem(
                "is ? beside a day-of-month of ?, so no day is named; put * in one of the two for every day",
            )),
            _ if open(of_month) && open(of_week) => Ok(Self::Every),
            _ if open(of_week) => days_of_month(of_month),
            _ if open(of_month) => days_of_week(of_week),
            _ => Err(DAY_OF_WEEK.problem(format!(
                "is {of_week:?} beside a day-of-month of {of_month:?}; name days in one of the two and put ? in the other"
            ))),
        }
    }

    /// The days of one month.
    pub(super) fn of(&self, year: i16, month: i8) -> Bits {
        // Years and months come from parsed fields, which hold real ones only.
        let Ok(first) = Date::new(year, month, 1) else { return Bits::default() };
        let month = Month { length: first.days_in_month(), first: first.weekday().to_sunday_one_offset() };
        match self {
            Self::Every => Bits::all(1, month.length),
            Self::OfMonth { days, special } => {
                let special = special.iter().filter_map(|day| day.of(month));
                (1..=month.length).filter(|day| days.has(*day)).chain(special).collect()
            }
            Self::OfWeek { days, special } => {
                let named = |day: &i8| days.has(month.weekday(*day)) || special.iter().any(|s| s.is(*day, month));
                (1..=month.length).filter(named).collect()
            }
        }
    }
}

/// What a day's number depends on.
#[derive(Clone, Copy)]
struct Month {
    length: i8,
    /// The weekday of the 1st.
    first: i8,
}

impl Month {
    fn weekday(self, day: i8) -> i8 {
        (self.first + day - 2) % 7 + 1
    }

    /// Saturdays give way to the Friday before and Sundays to the Monday after, unless that is in another month.
    fn nearest_weekday(self, day: i8) -> i8 {
        match self.weekday(day) {
            SATURDAY if day == 1 => 3,
            SATURDAY => day - 1,
            SUNDAY if day == self.length => day - 2,
            SUNDAY => day + 1,
            _ => day,
        }
    }

    /// The day, if the month has it. A month without it is passed by, as it is for a plain `31`.
    fn day(self, day: i8) -> Option<i8> {
        Some(day).filter(|day| (1..=self.length).contains(day))
    }
}

impl MonthDay {
    fn of(self, month: Month) -> Option<i8> {
        match self {
            Self::BeforeLast(offset) => month.day(month.length - offset),
            Self::NearestTo(day) => month.day(day).map(|day| month.nearest_weekday(day)),
            Self::NearestToBeforeLast(offset) => month.day(month.length - offset).map(|day| month.nearest_weekday(day)),
        }
    }

    /// Reads `L`, `L-3`, `LW`, `L-3W` and `15W`; nothing if it is none of them.
    fn parse(item: &str) -> Option<Self> {
        let (day, nearest) = item.strip_suffix('W').map_or((item, false), |day| (day, true));
        let Some(offset) = day.strip_prefix('L') else {
            let day = number(day).filter(|day| (1..=31).contains(day)).filter(|_| nearest)?;
            return i8::try_from(day).ok().map(Self::NearestTo);
        };
        let offset = match offset.strip_prefix('-') {
            None if offset.is_empty() => 0,
            None => return None,
            Some(offset) => number(offset).filter(|_| !offset.is_empty()).filter(|offset| *offset <= 30)?,
        };
        let offset = i8::try_from(offset).ok()?;
        Some(if nearest { Self::NearestToBeforeLast(offset) } else { Self::BeforeLast(offset) })
    }
}

impl WeekDay {
    fn is(self, day: i8, month: Month) -> bool {
        match self {
            Self::Last(weekday) => month.weekday(day) == weekday && day + 7 > month.length,
            Self::Nth(weekday, nth) => month.weekday(day) == weekday && (day - 1) / 7 + 1 == nth,
        }
    }
}

fn days_of_month(text: &str) -> Result<Days, InvalidInput> {
    let (mut days, mut special) = (Bits::default(), Vec::new());
    for item in text.split(',') {
        match MonthDay::parse(item) {
            Some(day) => special.push(day),
            None if item.contains(['L', 'W']) => return Err(DAY_OF_MONTH.refused(item)),
            None => insert(&mut days, DAY_OF_MONTH.item(item)?),
        }
    }
    Ok(Days::OfMonth { days, special })
}

fn days_of_week(text: &str) -> Result<Days, InvalidInput> {
    let (mut days, mut special) = (Bits::default(), Vec::new());
    for item in text.split(',') {
        if item == "L" {
            // The last day of the week. A habit of Quartz: an L that follows nothing is no last weekday of the month.
            days.insert(SATURDAY);
        } else if let Some(weekday) = item.strip_suffix('L') {
            special.push(WeekDay::Last(weekday_number(weekday, item)?));
        } else if let Some((weekday, nth)) = item.split_once('#') {
            let nth = number(nth).filter(|nth| (1..=5).contains(nth)).and_then(|nth| i8::try_from(nth).ok());
            let nth = nth.ok_or_else(|| {
                DAY_OF_WEEK.problem(format!("holds {item:?}; after # comes which one of the month it is, 1 to 5"))
            })?;
            special.push(WeekDay::Nth(weekday_number(weekday, item)?, nth));
        } else {
            insert(&mut days, DAY_OF_WEEK.item(item)?);
        }
    }
    Ok(Days::OfWeek { days, special })
}

fn weekday_number(text: &str, item: &str) -> Result<i8, InvalidInput> {
    i8::try_from(DAY_OF_WEEK.value(text, item)?).map_err(|_| DAY_OF_WEEK.refused(item))
}

fn insert(days: &mut Bits, values: Vec<i16>) {
    for day in values.into_iter().filter_map(|value| i8::try_from(value).ok()) {
        days.insert(day);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The days of a month by both fields.
    fn days(of_month: &str, of_week: &str, year: i16, month: i8) -> Vec<i8> {
        let bits = Days::parse(of_month, of_week).unwrap().of(year, month);
        (0..=40).filter(|day| bits.has(*day)).collect()
    }

    #[test]
    fn days_of_a_month_follow_the_table() {
        let check = |of_month, year, month, expected: &[i8]| {
            assert_eq!(days(of_month, "?", year, month), expected, "{of_month} in {year}-{month}");
        };
        check("31", 2026, 4, &[]);
        check("L", 2026, 4, &[30]);
        check("L", 2028, 2, &[29]);
        check("L-3", 2026, 2, &[25]);
        check("L-30", 2026, 1, &[1]);
        check("L-30", 2026, 4, &[]);
        // 2026-02-15 is a Sunday, 2026-08-15 a Saturday.
        check("15W", 2026, 2, &[16]);
        check("15W", 2026, 8, &[14]);
        check("15W", 2026, 1, &[15]);
        // The 1st is a Saturday and a Sunday.
        check("1W", 2026, 8, &[3]);
        check("1W", 2026, 2, &[2]);
        // The 31st is a Sunday and a Saturday; April has none.
        check("31W", 2026, 5, &[29]);
        check("31W", 2026, 10, &[30]);
        check("31W", 2026, 4, &[]);
        check("LW", 2026, 5, &[29]);
        check("LW", 2026, 6, &[30]);
        // The 31st less three is Thursday the 28th; less one is Saturday the 30th.
        check("L-3W", 2026, 5, &[28]);
        check("L-1W", 2026, 5, &[29]);
        check("1,15W,L", 2026, 8, &[1, 14, 31]);
        check("28-2", 2026, 4, &[1, 2, 28, 29, 30]);
    }

    #[test]
    fn weekdays_follow_the_table() {
        let check = |of_week, year, month, expected: &[i8]| {
            assert_eq!(days("?", of_week, year, month), expected, "{of_week} in {year}-{month}");
        };
        check("1", 2026, 2, &[1, 8, 15, 22]);
        check("SAT", 2026, 2, &[7, 14, 21, 28]);
        check("L", 2026, 2, &[7, 14, 21, 28]);
        check("6L", 2026, 2, &[27]);
        check("FRIL", 2026, 7, &[31]);
        check("6#3", 2026, 7, &[17]);
        check("FRI#5", 2026, 7, &[31]);
        check("FRI#5", 2026, 6, &[]);
        check("MON#1,FRIL", 2026, 7, &[6, 31]);
        check("SAT-SUN", 2026, 7, &[4, 5, 11, 12, 18, 19, 25, 26]);
    }

    #[test]
    fn a_star_beside_a_named_day_is_a_question_mark() {
        assert_eq!(days("*", "*", 2026, 2).len(), 28);
        assert_eq!(days("?", "*", 2026, 2).len(), 28);
        assert_eq!(days("*", "?", 2026, 2).len(), 28);
        assert_eq!(days("13", "*", 2026, 2), [13]);
        assert_eq!(days("*", "MON", 2026, 2), [2, 9, 16, 23]);
    }
}
