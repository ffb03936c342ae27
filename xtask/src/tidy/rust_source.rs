//! A Rust file taken apart: code without comments, string literals, and where its inline tests are.

/// A Rust file as the checks see it.
pub(super) struct RustSource {
    pub(super) path: String,
    /// The code of each line outside inline tests: comments left out, the inside of strings replaced by `·`.
    pub(super) code: Vec<(usize, String)>,
    /// The string literals outside inline tests, each with the line on which it begins.
    pub(super) literals: Vec<(usize, String)>,
}

impl RustSource {
    pub(super) fn read(path: &str, text: &str) -> Self {
        let Split { code, literals } = split(text);
        let lines: Vec<&str> = code.lines().collect();
        let tests = inline_tests(&lines);
        let outside = |line: usize| !tests.iter().any(|test| test.contains(&line));
        let code = lines.iter().enumerate().map(|(at, line)| (at + 1, *line));
        Self {
            path: path.to_owned(),
            code: code.filter(|(line, _)| outside(*line)).map(|(line, code)| (line, code.to_owned())).collect(),
            literals: literals.into_iter().filter(|(line, _)| outside(*line)).collect(),
        }
    }

    /// Lines that hold code: no blanks, no comments, no inline tests.
    pub(super) fn lines_of_code(&self) -> usize {
        self.code.iter().filter(|(_, line)| !line.trim().is_empty()).count()
    }

    /// Whether the file as a whole is a test, or belongs to one.
    pub(super) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests")
    }

    pub(super) fn is_below(&self, directory: &str) -> bool {
        self.path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
    }
}

struct Split {
    code: String,
    literals: Vec<(usize, String)>,
}

/// Goes through the text once. It knows strings, raw strings, characters, lifetimes and nested comments, which is all
/// that is needed to tell code from the rest.
fn split(text: &str) -> Split {
    let mut rest = Rest { text, line: 1 };
    let mut code = String::with_capacity(text.len());
    let mut literals = Vec::new();
    let mut after_word = false;
    while let Some(c) = rest.peek() {
        let line = rest.line;
        if rest.starts_with("//") {
            rest.take_until("\n");
        } else if rest.starts_with("/*") {
            keep_lines(&mut code, rest.take_comment());
        } else if let Some(hashes) = rest.raw_string().filter(|_| !after_word) {
            let start = rest.text.find('"').map_or(0, |at| at + 1);
            rest.skip(start);
            let end = format!("\"{}", "#".repeat(hashes));
            let inside = rest.take_until(&end);
            rest.skip(end.len());
            literals.push((line, inside.to_owned()));
            hide(&mut code, inside);
        } else if c == '"' {
            rest.skip(1);
            let inside = rest.take_string();
            literals.push((line, inside.to_owned()));
            hide(&mut code, inside);
        } else if c == '\'' {
            code.push_str(rest.take_char_or_lifetime());
        } else {
            code.push_str(rest.skip(c.len_utf8()));
        }
        after_word = c.is_alphanumeric() || c == '_';
    }
    Split { code, literals }
}

/// A literal in code: its quotes, and a dot for each line that holds some of it.
fn hide(code: &mut String, literal: &str) {
    code.push('"');
    for (at, line) in literal.split('\n').enumerate() {
        if at > 0 {
            code.push('\n');
        }
        if !line.trim().is_empty() {
            code.push('·');
        }
    }
    code.push('"');
}

fn keep_lines(code: &mut String, skipped: &str) {
    code.extend(skipped.chars().filter(|c| *c == '\n'));
}

/// What has not been read yet.
struct Rest<'a> {
    text: &'a str,
    line: usize,
}

impl<'a> Rest<'a> {
    fn peek(&self) -> Option<char> {
        self.text.chars().next()
    }

    fn starts_with(&self, start: &str) -> bool {
        self.text.starts_with(start)
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.text.split_at(bytes.min(self.text.len()));
        self.line += skipped.matches('\n').count();
        self.text = rest;
        skipped
    }

    fn take_until(&mut self, end: &str) -> &'a str {
        let at = self.text.find(end).unwrap_or(self.text.len());
        self.skip(at)
    }

    fn take_comment(&mut self) -> &'a str {
        let (mut depth, mut at) = (0, 0);
        let bytes = self.text.as_bytes();
        while at < bytes.len() {
            if bytes[at..].starts_with(b"/*") {
                (depth, at) = (depth + 1, at + 2);
            } else if bytes[at..].starts_with(b"*/") {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    break;
                }
            } else {
                at += 1;
            }
        }
        self.skip(at)
    }

    /// The number of `#` if a raw string begins here.
    fn raw_string(&self) -> Option<usize> {
        let after = ["br", "cr", "r"].into_iter().find_map(|prefix| self.text.strip_prefix(prefix))?;
        let hashes = after.len() - after.trim_start_matches('#').len();
        after[hashes..].starts_with('"').then_some(hashes)
    }

    /// The inside of a string whose first quote has been read.
    fn take_string(&mut self) -> &'a str {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while at < bytes.len() && bytes[at] != b'"' {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        let inside = self.skip(at);
        self.skip(1);
        inside
    }

    /// `'a'`, `'\n'`, `'"'`, or a lifetime.
    fn take_char_or_lifetime(&mut self) -> &'a str {
        let mut chars = self.text.chars().skip(1);
        let length = match (chars.next(), chars.next()) {
            (Some('\\'), Some(escaped)) => {
                let after = 2 + escaped.len_utf8();
                after + self.text[after..].find('\'').map_or(0, |at| at + 1)
            }
            (Some(c), Some('\'')) => 2 + c.len_utf8(),
            _ => 1,
        };
        self.skip(length)
    }
}

/// The lines of items under `#[cfg(test)]`, counted from 1.
fn inline_tests(code: &[&str]) -> Vec<std::ops::RangeInclusive<usize>> {
    let mut tests = Vec::new();
    let mut at = 0;
    while at < code.len() {
        if code[at].trim_start().starts_with("#[cfg(test)]") {
            let end = end_of_item(code, at);
            tests.push(at + 1..=end + 1);
            at = end;
        }
        at += 1;
    }
    tests
}

/// The line on which the item that begins at `start` ends: at its closing brace, or at a semicolon before any brace.
fn end_of_item(code: &[&str], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, line) in code.iter().enumerate().skip(start) {
        for c in line.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth <= 1 => return at,
                '}' => depth -= 1,
                ';' if depth == 0 => return at,
                _ => {}
            }
        }
    }
    code.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, lines_of_code: usize, literals: &[&str]) {
        let source = RustSource::read("a.rs", text);
        assert_eq!(source.lines_of_code(), lines_of_code, "{:?}", source.code);
        assert_eq!(source.literals.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), literals);
    }

    #[test]
    fn comments_blanks_and_tests_are_not_code() {
        check("// a\n\nfn f() {} // b\n/* c\n/* d */ */\n", 1, &[]);
        check("fn f() {}\n#[cfg(test)]\nmod tests {\n fn g() { \"in a test\"; }\n}\nfn h() {}\n", 2, &[]);
        check("#[cfg(test)]\nmod tests;\nfn h() {}\n", 1, &[]);
    }

    #[test]
    fn literals_are_found_and_do_not_confuse() {
        check(r#"let a = "x // y"; let b = "say \"{\"";"#, 1, &["x // y", r#"say \"{\""#]);
        check("let a = r#\"one \"two\"\nthree\"#;", 2, &["one \"two\"\nthree"]);
        check("fn f<'a>(c: &'a str) { c == '\"' || c == '\\'' || c == '\\u{41}' } // \"", 1, &[]);
        check("let for_r = for_r\"\";", 1, &[""]);
    }

    #[test]
    fn a_literal_knows_its_line() {
        let source = RustSource::read("a.rs", "let a = \"1\n2\";\n// x\nlet b = \"4\";");
        assert_eq!(source.literals.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 4]);
    }
}
