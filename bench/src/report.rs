//! A table for people, JSON for programs.

use crate::measure::Measure;

pub(crate) fn print(database: &str, measures: &[Measure]) {
    println!(
        "\n{:<20} {:>10} {:>10} {:>6}   {:>8} {:>8}  {:<9}",
        database, "ratchet", "raw", "ratio", "floor", "goal", ""
    );
    for m in measures {
        let sample = &m.sample;
        let target = m.target.as_ref().map_or_else(
            || format!("{:>8} {:>8}  {:<9}", "", "", ""),
            |target| format!("{:>8} {:>8}  {:<9}", digits(target.floor), digits(target.goal), target.verdict()),
        );
        let (name, value, raw) = (sample.name, digits(sample.value), digits(sample.raw));
        println!("{name:<20} {value:>10} {raw:>10} {:>6.2}   {target}  {} ({})", sample.ratio, m.unit, m.what);
        if !sample.extras.is_empty() {
            let extras: Vec<String> =
                sample.extras.iter().map(|(name, value)| format!("{name} {}", digits(*value))).collect();
            println!("{:<20} {}", "", extras.join(", "));
        }
    }
}

/// Small ones with decimals.
fn digits(value: f64) -> String {
    if value != 0.0 && value.abs() < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

pub(crate) fn json(measures: &[Measure]) -> String {
    let entries = measures.iter().map(|m| {
        let sample = &m.sample;
        let mut entry = serde_json::json!({
            "value": sample.value, "raw": sample.raw, "ratio_to_raw": sample.ratio, "unit": m.unit, "what": m.what,
        });
        for (name, value) in &sample.extras {
            entry[*name] = (*value).into();
        }
        if let Some(target) = &m.target {
            entry["target"] = serde_json::json!({
                "figure": target.measured, "floor": target.floor, "goal": target.goal, "verdict": target.verdict(),
            });
        }
        (sample.name.to_owned(), entry)
    });
    serde_json::Value::Object(entries.collect()).to_string()
}
