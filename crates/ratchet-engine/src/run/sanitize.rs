//! Cleaning error texts before anybody sees them.

use std::sync::LazyLock;

use regex_lite::Regex;

/// Cleans an error before it is stored, published, logged or handed to a callback. It is asked once per failure.
pub trait ErrorSanitizer: Send + Sync {
    /// The text to keep for an error of `class` that said `message`.
    fn sanitize(&self, class: &str, message: &str) -> String;
}

/// Keeps the class, hides credentials in URLs and key-value pairs, and e-mail addresses.
///
/// ```
/// use ratchet_engine::{DefaultErrorSanitizer, ErrorSanitizer};
///
/// let kept = DefaultErrorSanitizer.sanitize("RuntimeException", "Connection failed: jdbc:mysql://admin:s3cret@db.internal:3306/prod");
/// assert_eq!(kept, "RuntimeException: Connection failed: jdbc:mysql://[REDACTED]@db.internal:3306/prod");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultErrorSanitizer;

static URL_USERINFO: LazyLock<Regex> = LazyLock::new(|| pattern(r"(://)[^\s/@]+(?:@[^\s/@]+)*@"));
static CREDENTIAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)\b([\w-]*(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|credential)s?)(["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&]+)"#,
    )
});
static BEARER: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/._~-]{8,}=*"));
static EMAIL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are constants and tested")
}

impl ErrorSanitizer for DefaultErrorSanitizer {
    fn sanitize(&self, class: &str, message: &str) -> String {
        // URLs first: what stands before an @ in them would look like an e-mail address.
        let text = URL_USERINFO.replace_all(message, "${1}[REDACTED]\u{0}");
        let text = BEARER.replace_all(&text, "${1} [REDACTED]");
        let text = CREDENTIAL.replace_all(&text, "${1}${2}[REDACTED]");
        let text = EMAIL.replace_all(&text, "[REDACTED]");
        format!("{class}: {}", text.replace('\0', "@"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_the_rest_is_kept() {
        let check = |message: &str, expected: &str| {
            assert_eq!(DefaultErrorSanitizer.sanitize("E", message), format!("E: {expected}"));
        };
        check("plain words stay", "plain words stay");
        check(
            "Connection failed: jdbc:mysql://admin:s3cret@db.internal:3306/prod",
            "Connection failed: jdbc:mysql://[REDACTED]@db.internal:3306/prod",
        );
        check("postgres://app:p@ss@db/x unreachable", "postgres://[REDACTED]@db/x unreachable");
        check("redis://token@cache:6379", "redis://[REDACTED]@cache:6379");
        check("https://example.org/a@b is fine", "https://example.org/a@b is fine");
        check("no user ann.lee+x@mail.example.org here", "no user [REDACTED] here");
        check("password=hunter2, retrying", "password=[REDACTED], retrying");
        check("PGPASSWORD: 'two words' set", "PGPASSWORD: [REDACTED] set");
        check(r#"{"api_key":"abc123","id":7}"#, r#"{"api_key":[REDACTED],"id":7}"#);
        check("Authorization: Bearer eyJhbGciOi.abc", "Authorization: Bearer [REDACTED]");
    }
}
