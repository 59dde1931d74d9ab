//! Takes JSON apart that is known to be JSON, without looking into it further than where
//! its parts end. Whoever uses a part reads it properly.
//!
//! Quotation marks are searched for, and what lies between them is not looked at: that is
//! several times as fast as reading it. Text that is no JSON may come apart anywhere, or
//! not at all; the parts are always parts of it.

/// Returns the fields of an object, names with their quotation marks. `None` where it is
/// none.
pub(super) fn fields(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut parts = Parts::new(text, b'{')?;
    let mut fields = Vec::with_capacity(24);
    while !parts.at_end(b'}')? {
        let name = parts.value()?;
        parts.pass(b':')?;
        let value = parts.value()?;
        if !name.starts_with('"') {
            return None;
        }
        fields.push((name, value));
    }
    Some(fields)
}

/// Returns the elements of a list. `None` where it is none.
pub(super) fn elements(text: &str) -> Option<Vec<&str>> {
    let mut parts = Parts::new(text, b'[')?;
    let mut elements = Vec::new();
    while !parts.at_end(b']')? {
        elements.push(parts.value()?);
    }
    Some(elements)
}

struct Parts<'a> {
    text: &'a str,
    at: usize,
    /// Whether a part was told, so that a comma must come before the next.
    begun: bool,
}

impl<'a> Parts<'a> {
    fn new(text: &'a str, open: u8) -> Option<Self> {
        let mut parts = Self {
            text,
            at: 0,
            begun: false,
        };
        parts.pass(open)?;
        Some(parts)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn pass_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn pass(&mut self, byte: u8) -> Option<()> {
        self.pass_blanks();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Goes to the next part; returns whether there is none any more.
    fn at_end(&mut self, close: u8) -> Option<bool> {
        self.pass_blanks();
        if self.peek()? == close {
            return Some(true);
        }
        if self.begun {
            self.pass(b',')?;
        }
        self.begun = true;
        Some(false)
    }

    /// Passes over a value, and returns it.
    fn value(&mut self) -> Option<&'a str> {
        self.pass_blanks();
        let from = self.at;
        match self.peek()? {
            b'"' => self.pass_string()?,
            b'{' | b'[' => self.pass_nested()?,
            _ => self.pass_word(),
        }
        (self.at > from)
            .then(|| self.text.get(from..self.at))
            .flatten()
    }

    /// Passes over a string: up to a quotation mark with an even number of backslashes
    /// before it.
    fn pass_string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let from = self.at + 1;
        let mut at = from;
        loop {
            at += memchr::memchr(b'"', bytes.get(at..)?)?;
            let before = bytes.get(from..at)?;
            let escapes = before.iter().rev().take_while(|byte| **byte == b'\\');
            at += 1;
            if escapes.count() % 2 == 0 {
                self.at = at;
                return Some(());
            }
        }
    }

    fn pass_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.pass_string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn pass_word(&mut self) {
        let is_end = |byte: u8| matches!(byte, b',' | b':' | b'}' | b']' | b'"') || byte <= b' ';
        while self.peek().is_some_and(|byte| !is_end(byte)) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn an_object_comes_apart_as_a_reader_of_json_takes_it_apart() {
        let texts = [
            r#"{}"#,
            r#" { "a" : 1 , "b\"}":[ "]", {"x":"\\"} ] , "c":null } "#,
            r#"{"a":"\\\\","b":"\\\"","c":"","d":-1.5e3,"e":true,"a":[]}"#,
            r#"{"ä":"ö","text":"{\"a\":[1,2,{\"b\":\"c\\\\\"}]}","z":{"y":{"x":[[[]]]}}}"#,
        ];
        for text in texts {
            let told = fields(text).unwrap();
            let read: Vec<(String, String)> = read_fields(text);
            let told: Vec<(String, String)> = told
                .into_iter()
                .map(|(name, value)| (serde_json::from_str(name).unwrap(), value.to_owned()))
                .collect();
            assert_eq!(told, read, "{text}");
        }
    }

    fn read_fields(text: &str) -> Vec<(String, String)> {
        struct All(Vec<(String, String)>);
        impl<'de> serde::Deserialize<'de> for All {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Each;
                impl<'de> serde::de::Visitor<'de> for Each {
                    type Value = All;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<All, A::Error> {
                        let mut all = Vec::new();
                        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                            all.push((name, value.get().to_owned()));
                        }
                        Ok(All(all))
                    }
                }
                deserializer.deserialize_map(Each)
            }
        }
        serde_json::from_str::<All>(text).unwrap().0
    }

    #[test]
    fn a_list_comes_apart_as_a_reader_of_json_takes_it_apart() {
        for text in [
            "[]",
            " [ 1 , \"]\\\"\", {\"a\":[2]} ,null] ",
            "[[],[[]],\"\"]",
        ] {
            let read: Vec<&RawValue> = serde_json::from_str(text).unwrap();
            let read: Vec<&str> = read.into_iter().map(RawValue::get).collect();
            assert_eq!(elements(text).unwrap(), read, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_ends_and_gives_parts_of_itself() {
        let whole = r#"{"a":{"b":["\\",1,"ü"]},"c":"d\"e"}"#;
        for cut in (0..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
            assert_eq!(fields(&whole[..cut]), None, "{cut}");
            fields(&whole[cut..]);
            elements(&whole[cut..]);
        }
        for text in [
            "",
            "[",
            "{,}",
            "{:}",
            "{\"a\"}",
            "{\"a\":}",
            "{1:2}",
            "{\"a\" \"b\"}",
        ] {
            assert_eq!(fields(text), None, "{text}");
        }
        for text in ["]", "[,]", "[1 2]", "[1,", "[}", "{}"] {
            assert_eq!(elements(text), None, "{text}");
        }
        let deep = "[".repeat(1 << 20);
        assert_eq!(elements(&deep), None);
    }
}
