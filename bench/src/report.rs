//! A table for people, JSON for programs.

use crate::measure::Measure;

pub(crate) fn print(measures: &[Measure]) {
    println!("\n{:<12} {:>10} {:>10} {:>7}  ", "measure", "ratchet", "raw", "ratio");
    for m in measures {
        println!("{:<12} {:>10.0} {:>10.0} {:>7.2}  {} ({})", m.name, m.value, m.raw, m.value / m.raw, m.unit, m.what);
    }
}

pub(crate) fn json(measures: &[Measure]) -> String {
    let entries = measures.iter().map(|m| {
        let entry = serde_json::json!({
            "value": m.value, "raw": m.raw, "ratio_to_raw": m.value / m.raw, "unit": m.unit, "what": m.what,
        });
        (m.name.to_owned(), entry)
    });
    serde_json::Value::Object(entries.collect()).to_string()
}
