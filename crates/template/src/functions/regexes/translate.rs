//! Go's syntax of regular expressions in that of the `regex` crate.
//!
//! Both are RE2. In Go, `\d`, `\s`, `\w` and `\b` are ASCII, a brace that repeats nothing is a brace, `\Q…\E` quotes, and
//! brackets within brackets mean nothing.

/// Translates an expression; `Err` has Go's message.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator { pattern, rest: pattern, output: String::with_capacity(pattern.len() + 16) };
    translator.run()?;
    Ok(translator.output)
}

struct Translator<'p> {
    pattern: &'p str,
    rest: &'p str,
    output: String,
}

fn error(what: &str, part: &str) -> String {
    format!("error parsing regexp: {what}: `{part}`")
}

impl<'p> Translator<'p> {
    fn run(&mut self) -> Result<(), String> {
        let mut groups: usize = 0;
        // What may be repeated, and the repetition before this one, if any.
        let mut can_repeat = false;
        let mut repetition: Option<&'p str> = None;
        while let Some(next) = self.rest.chars().next() {
            let before = self.rest;
            let previous_repetition = repetition.take();
            match next {
                '\\' => {
                    can_repeat = self.escape(false)? || can_repeat;
                    continue;
                }
                '[' => {
                    self.class()?;
                    can_repeat = true;
                    continue;
                }
                '(' => {
                    groups += 1;
                    can_repeat = false;
                    if let Some(group) = self.rest.strip_prefix("(?") {
                        self.group(group)?;
                        // Flags alone, such as `(?i)`, are no group.
                        groups -= usize::from(self.output.ends_with(')'));
                        continue;
                    }
                }
                ')' => {
                    if groups == 0 {
                        return Err(error("unexpected )", self.pattern));
                    }
                    groups -= 1;
                    can_repeat = true;
                }
                '|' => can_repeat = false,
                '*' | '+' | '?' | '{' => {
                    let length = if next == '{' { repetition_length(self.rest)? } else { Some(1) };
                    let Some(length) = length else {
                        self.output.push_str("\\{");
                        self.rest = &self.rest[1..];
                        can_repeat = true;
                        continue;
                    };
                    let lazy = usize::from(self.rest[length..].starts_with('?'));
                    let operator = &before[..length + lazy];
                    if let Some(previous) = previous_repetition {
                        return Err(error("invalid nested repetition operator", &format!("{previous}{operator}")));
                    }
                    if !can_repeat {
                        return Err(error("missing argument to repetition operator", &before[..length]));
                    }
                    self.output.push_str(operator);
                    self.rest = &self.rest[length + lazy..];
                    repetition = Some(operator);
                    continue;
                }
                _ => can_repeat = true,
            }
            self.take(next.len_utf8());
        }
        if groups > 0 {
            return Err(error("missing closing )", self.pattern));
        }
        Ok(())
    }

    /// Copies so many bytes.
    fn take(&mut self, length: usize) {
        self.output.push_str(&self.rest[..length]);
        self.rest = &self.rest[length..];
    }

    /// A group that begins with `(?`.
    fn group(&mut self, group: &'p str) -> Result<(), String> {
        if let Some(name) = group.strip_prefix("P<").or_else(|| group.strip_prefix('<')) {
            let start = self.rest;
            let end = name.find('>').ok_or_else(|| error("invalid named capture", start))?;
            let is_name =
                |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let length = start.len() - name.len() + end + 1;
            if !is_name(&name[..end]) {
                return Err(error("invalid named capture", &start[..length]));
            }
            self.output.push_str("(?P<");
            self.output.push_str(&name[..=end]);
            self.rest = &self.rest[length..];
            return Ok(());
        }
        let end = group.find(|character: char| !"imsU-".contains(character)).unwrap_or(group.len());
        let closes = group[end..].chars().next();
        if !matches!(closes, Some(':' | ')')) || (closes == Some(')') && end == 0) {
            let shown = closes.map_or(end, |character| end + character.len_utf8());
            let what = if closes.is_none() { "missing closing )" } else { "invalid or unsupported Perl syntax" };
            let part = if closes.is_none() { self.pattern } else { &self.rest[..2 + shown] };
            return Err(error(what, part));
        }
        let length = 2 + end + 1;
        self.take(length);
        Ok(())
    }

    /// An escape; returns whether it can be repeated.
    fn escape(&mut self, in_class: bool) -> Result<bool, String> {
        let Some(next) = self.rest[1..].chars().next() else {
            return Err("error parsing regexp: trailing backslash at end of expression: ``".to_owned());
        };
        let length = 1 + next.len_utf8();
        let replaced = match (next, in_class) {
            ('d', true) => Some("0-9"),
            ('s', true) => Some(r"\t\n\f\r "),
            ('w', true) => Some("0-9A-Za-z_"),
            ('d', false) => Some("[0-9]"),
            ('s', false) => Some(r"[\t\n\f\r ]"),
            ('w', false) => Some("[0-9A-Za-z_]"),
            ('D', _) => Some("[^0-9]"),
            ('S', _) => Some(r"[^\t\n\f\r ]"),
            ('W', _) => Some("[^0-9A-Za-z_]"),
            ('b', false) => Some(r"(?-u:\b)"),
            ('B', false) => Some(r"(?-u:\B)"),
            _ => None,
        };
        if let Some(replaced) = replaced {
            self.output.push_str(replaced);
            self.rest = &self.rest[length..];
            return Ok(true);
        }
        match next {
            'Q' if !in_class => {
                let quoted = &self.rest[2..];
                let end = quoted.find("\\E").unwrap_or(quoted.len());
                self.output.push_str(&regex::escape(&quoted[..end]));
                self.rest = quoted[end..].strip_prefix("\\E").unwrap_or("");
                return Ok(end > 0);
            }
            'E' if !in_class => {
                self.rest = &self.rest[2..];
                return Ok(false);
            }
            'p' | 'P' => {
                let name = &self.rest[2..];
                let length = if name.starts_with('{') {
                    name.find('}').map(|end| end + 1)
                } else {
                    name.chars().next().map(char::len_utf8)
                };
                let length = 2 + length.ok_or_else(|| error("invalid character class range", self.rest))?;
                if regex::bytes::Regex::new(&self.rest[..length]).is_err() {
                    return Err(error("invalid character class range", &self.rest[..length]));
                }
                self.take(length);
                return Ok(true);
            }
            '0'..='7' if next == '0' || self.rest[2..].starts_with(|digit: char| ('0'..='7').contains(&digit)) => {
                // An octal number of up to three digits.
                let digits = self.rest[1..].bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let code = u32::from_str_radix(&self.rest[1..=digits], 8).unwrap_or_default();
                self.output.push_str(&format!("\\x{{{code:x}}}"));
                self.rest = &self.rest[1 + digits..];
                return Ok(true);
            }
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => {}
            'A' | 'z' if !in_class => {}
            'x' => {
                let code = &self.rest[2..];
                let length = if code.starts_with('{') { code.find('}').map_or(0, |end| end + 1) } else { 2 };
                let is_fine = length > 0
                    && code.get(..length).is_some_and(|code| {
                        let digits = code.trim_matches(['{', '}']);
                        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                    });
                if !is_fine {
                    let end = (2 + length.max(1)).min(self.rest.len());
                    return Err(error("invalid escape sequence", self.rest.get(..end).unwrap_or(self.rest)));
                }
                self.take(2 + length);
                return Ok(true);
            }
            _ if next.is_ascii_punctuation() => {
                self.output.push_str(&regex::escape(&next.to_string()));
                self.rest = &self.rest[length..];
                return Ok(true);
            }
            _ => return Err(error("invalid escape sequence", &self.rest[..length])),
        }
        self.take(length);
        Ok(true)
    }

    /// A class in brackets.
    fn class(&mut self) -> Result<(), String> {
        let start = self.rest;
        self.take(1);
        if self.rest.starts_with('^') {
            self.take(1);
        }
        let mut is_first = true;
        let mut range_from: Option<(char, &'p str)> = None;
        loop {
            let Some(next) = self.rest.chars().next() else { return Err(error("missing closing ]", start)) };
            if next == ']' && !is_first {
                self.take(1);
                return Ok(());
            }
            is_first = false;
            if self.rest.starts_with("[:")
                && let Some(end) = self.rest.find(":]")
            {
                let name = &self.rest[..end + 2];
                let known = name[2..end].trim_start_matches('^');
                if !NAMES.contains(&known) {
                    return Err(error("invalid character class range", name));
                }
                self.take(end + 2);
                range_from = None;
                continue;
            }
            let item = self.rest;
            if next == '-' {
                let after = self.rest[1..].chars().next();
                if let (Some((from, from_text)), Some(to)) = (range_from, after)
                    && to != ']'
                    && to != '\\'
                {
                    if to < from {
                        let part = &from_text[..from_text.len() - self.rest.len() + 1 + to.len_utf8()];
                        return Err(error("invalid character class range", part));
                    }
                    self.take(1);
                    self.literal_in_class(to);
                    range_from = None;
                    continue;
                }
                if range_from.is_some() && after == Some('\\') {
                    self.take(1);
                } else {
                    self.output.push_str("\\-");
                    self.rest = &self.rest[1..];
                }
                range_from = None;
                continue;
            }
            if next == '\\' {
                self.escape(true)?;
                // Only escapes of one character can begin a range.
                let text = &item[..item.len() - self.rest.len()];
                let letter = text.chars().nth(1).unwrap_or('d');
                range_from = (letter.is_ascii_punctuation() || "afnrtvx".contains(letter)).then_some(('\0', item));
                continue;
            }
            self.literal_in_class(next);
            range_from = Some((next, item));
        }
    }

    fn literal_in_class(&mut self, character: char) {
        if matches!(character, '[' | ']' | '&' | '~' | '^' | '-' | '\\') {
            self.output.push('\\');
        }
        self.output.push(character);
        self.rest = &self.rest[character.len_utf8()..];
    }
}

const NAMES: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// The length of `{2}`, `{2,}` or `{2,3}`; `None` if it is none of these, and so a brace.
fn repetition_length(text: &str) -> Result<Option<usize>, String> {
    let Some(end) = text.find('}') else { return Ok(None) };
    let inner = &text[1..end];
    let (least, most) = inner.split_once(',').map_or((inner, None), |(least, most)| (least, Some(most)));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(least) || most.is_some_and(|most| !most.is_empty() && !is_number(most)) {
        return Ok(None);
    }
    let bad = || error("invalid repeat count", &text[..=end]);
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= 1000).ok_or_else(bad);
    let lower = number(least)?;
    if let Some(most) = most.filter(|most| !most.is_empty())
        && number(most)? < lower
    {
        return Err(bad());
    }
    Ok(Some(end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_is_that_of_go() {
        for (pattern, text, expected) in [
            (r"^\d+$", "٣", false),
            (r"^\w$", "é", false),
            (r"a{,2}", "a{,2}", true),
            (r"\Qa.b\E+", "a.bbb", true),
            (r"^[[a]+$", "[a", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[\d\s-]+$", "1 -", true),
            (r"^[a\-z]$", "b", false),
            (r"(?i)ABC", "abc", true),
            (r"^[^\W_]+$", "ab1", true),
            (r"\bfoo\b", "a foo.", true),
            (r"^\x41\x{42}\103$", "ABC", true),
            (r"^[[:alpha:]]{2}$", "ab", true),
            (r"^[]a]$", "]", true),
        ] {
            let translated = translate(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            let regex = regex::bytes::Regex::new(&translated).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text.as_bytes()), expected, "{pattern} {translated} {text}");
        }
    }

    #[test]
    fn errors_are_those_of_go() {
        for (pattern, message) in [
            ("[", "missing closing ]: `[`"),
            ("a(b", "missing closing ): `a(b`"),
            ("a)b", "unexpected ): `a)b`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("\\", "trailing backslash at end of expression: ``"),
        ] {
            assert_eq!(translate(pattern), Err(format!("error parsing regexp: {message}")), "{pattern}");
        }
    }
}
