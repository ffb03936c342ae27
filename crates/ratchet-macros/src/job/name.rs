//! Names: of kinds, of queues, and of what is generated.

use proc_macro2::Ident;
use quote::format_ident;
use syn::ext::IdentExt;

/// Longest kind. As in `ratchet_core::limits`, like the rules below; a test compares them.
const KIND_CHARS_MAX: usize = 128;
const QUEUE_CHARS_MAX: usize = 64;

/// Refuses what cannot be a kind.
pub(crate) fn check_kind(text: &str) -> Result<(), String> {
    check_identifier("kind", text, KIND_CHARS_MAX)
}

/// Refuses what cannot be a queue.
pub(crate) fn check_queue(text: &str) -> Result<(), String> {
    check_identifier("queue", text, QUEUE_CHARS_MAX)
}

fn check_identifier(field: &str, text: &str, chars_max: usize) -> Result<(), String> {
    let chars = text.chars().count();
    if chars == 0 {
        return Err(format!("`{field}` is empty; give 1 to {chars_max} characters"));
    }
    if chars > chars_max {
        return Err(format!("`{field}` is {chars} characters long; the limit is {chars_max}"));
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    match text.chars().enumerate().find(|(_, c)| !allowed(*c)) {
        None => Ok(()),
        Some((at, c)) => {
            Err(format!("`{field}` holds {c:?} at position {}; only a-z, 0-9, '.', '_' and '-' are allowed", at + 1))
        }
    }
}

/// `ChargeCardJob` for `charge_card`.
pub(crate) fn payload_name(function: &Ident) -> Ident {
    let mut camel = String::new();
    for word in function.unraw().to_string().split('_') {
        let mut chars = word.chars();
        camel.extend(chars.next().into_iter().flat_map(char::to_uppercase));
        camel.push_str(chars.as_str());
    }
    // A name such as `_3d` would begin with a digit.
    let prefix = if camel.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
    format_ident!("{prefix}{camel}Job", span = function.span())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_their_words_are_those_of_the_core() {
        let long = |chars| "k".repeat(chars);
        let texts =
            ["", "billing.charge", "a_b-3", "A", "a b", "é", "a\0", &long(64), &long(65), &long(128), &long(129)];
        for text in texts {
            let words = |refused: ratchet_core::InvalidInput| refused.to_string();
            // NUL has its own words there.
            if !text.contains('\0') {
                assert_eq!(check_kind(text), ratchet_core::Kind::new(text).map(drop).map_err(words), "{text:?}");
                assert_eq!(check_queue(text), ratchet_core::QueueName::new(text).map(drop).map_err(words), "{text:?}");
            }
        }
        assert!(check_kind("a\0").is_err());
    }

    #[test]
    fn the_payload_is_named_after_the_function() {
        let check = |function: &str, payload: &str| {
            let function: Ident = syn::parse_str(function).unwrap();
            assert_eq!(payload_name(&function), payload);
        };
        check("charge", "ChargeJob");
        check("charge_card2", "ChargeCard2Job");
        check("r#type", "TypeJob");
        check("__tick_", "TickJob");
        check("_3d", "_3dJob");
        check("élan", "ÉlanJob");
    }
}
