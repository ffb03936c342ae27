//! Printing: tables for people, JSON for programs.

use std::borrow::Cow;
use std::io::{self, Write};

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table};
use console::Term;
use serde::Serialize;

/// Where and how a command prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints `value` as JSON, or what `people` makes of it.
    pub(crate) fn show<T: Serialize>(self, value: &T, people: impl FnOnce(&T) -> String) -> io::Result<()> {
        if self.json {
            let mut stdout = io::stdout().lock();
            serde_json::to_writer_pretty(&mut stdout, value)?;
            writeln!(stdout)
        } else {
            self.say(people(value))
        }
    }

    /// Prints text for people.
    #[expect(clippy::unused_self, reason = "all printing goes through here")]
    pub(crate) fn say(self, text: impl AsRef<str>) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{}", visible(text.as_ref()))
    }
}

/// Text without anything that a terminal would obey: it may come from whomever a job has to do with.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    };
    text.chars().map(|c| if obeyed(c) { picture(c) } else { c }).collect()
}

/// A table without lines: numbers to the right, the rest to the left. On a terminal it fits the width: the column `may_wrap`
/// gives way, as long as what is left of it can be read.
pub(crate) fn table<R>(header: &[&str], may_wrap: usize, rows: impl IntoIterator<Item = R>) -> String
where
    R: IntoIterator<Item = String>,
{
    let mut table = Table::new();
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    let numeric = |at: usize| table.column_cells_iter(at).flatten().all(|cell| is_number(&cell.content()));
    for at in (0..header.len()).filter(|at| numeric(*at)).collect::<Vec<_>>() {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    laid_out(table, may_wrap)
}

/// Names and values below each other.
pub(crate) fn details(rows: Vec<(&str, String)>) -> String {
    let mut table = Table::new();
    for (name, value) in rows {
        table.add_row([name.to_owned(), value]);
    }
    laid_out(table, 1)
}

/// The least width of a column that gives way. Lines that the terminal breaks are easier to read than a word in pieces.
const LEAST: u16 = 16;

fn laid_out(mut table: Table, may_wrap: usize) -> String {
    table.load_style(comfy_table::presets::NOTHING);
    let (columns, widths) = (table.column_count(), table.column_max_content_widths());
    let least = |(at, width): (usize, &u16)| 2 + if at == may_wrap { (*width).min(LEAST) } else { *width };
    let least: u16 = widths.iter().enumerate().map(least).sum();
    let stdout = Term::stdout();
    if let Some((_, width)) = stdout.size_checked().filter(|(_, width)| stdout.is_term() && least <= *width) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if at + 1 == columns { 0 } else { 2 }));
        if at != may_wrap {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// A count, or a duration.
fn is_number(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    unit.len() < text.len() && ["", " µs", " ms", " s"].contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected);
        check("plain\tö\n", "plain\tö\n");
        check("\u{1b}[31mred\r\u{7f}\u{9b}2J", "␛[31mred␍␡\u{fffd}2J");
    }
}
