//! Comparing sides: in which order they are measured, and how their samples are printed.

use crate::metrics::Sample;

/// The order of the sides in a round. Each comes early in some rounds and late in others, so that none has the quieter machine or
/// the larger tables for itself.
pub fn order(round: usize, sides: usize) -> impl Iterator<Item = usize> {
    (0..sides).map(move |side| (side + round) % sides)
}

/// What is printed of sides beside the one that they are held against.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    /// What was measured, and how often.
    pub title: &'a str,
    /// The name of the side that the others are held against.
    pub beside: &'a str,
    /// Names of extras, each a column.
    pub extras: &'a [&'static str],
    /// The least median ratio that is good enough.
    pub floor: Option<f64>,
}

impl Table<'_> {
    /// Prints the medians of each side's rounds.
    pub fn print(&self, sides: &[Vec<Sample>]) {
        println!("\n{}: medians in jobs/s and their ratio; ratios of pairs", self.title);
        print!("{:<24} {:>9} {:>9} {:>7}", "", "with", self.beside, "ratio");
        print!("   {:>7} {:>7} {:>7}", "median", "lowest", "highest");
        self.extras.iter().for_each(|extra| print!(" {extra:>14}"));
        println!();
        for rounds in sides.iter().filter(|rounds| !rounds.is_empty()) {
            self.print_row(&Sample::median(rounds));
        }
    }

    fn print_row(&self, sample: &Sample) {
        let extra = |name| sample.extra(name).unwrap_or(0.0);
        let Sample { name, value, raw, ratio, .. } = sample;
        print!("{name:<24} {value:>9.0} {raw:>9.0} {:>7.2}", value / raw);
        print!("   {ratio:>7.2} {:>7.2} {:>7.2}", extra("ratio_lowest"), extra("ratio_highest"));
        self.extras.iter().for_each(|name| print!(" {:>14.0}", extra(name)));
        match self.floor {
            Some(floor) => println!("   {floor} {}", if *ratio >= floor { "met" } else { "MISSED" }),
            None => println!(),
        }
    }
}
