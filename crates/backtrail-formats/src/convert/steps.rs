//! Responses for programs that keep the text of a response apart from its calls.

use backtrail::context::{HandOverCall, ReplyPart};

/// A part of a response: texts, and the calls after them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step<'r> {
    pub(super) texts: Vec<&'r str>,
    pub(super) calls: Vec<&'r HandOverCall>,
}

impl Step<'_> {
    /// Returns the texts as one.
    pub(super) fn text(&self) -> String {
        self.texts.join("\n")
    }
}

/// Splits a response where a text follows a call, for programs that send the texts of a response
/// before its calls. Each step is a response of its own, so that nothing changes its place.
pub(super) fn split(parts: &[ReplyPart]) -> impl Iterator<Item = &[ReplyPart]> {
    parts.chunk_by(|before, after| {
        !matches!((before, after), (ReplyPart::Call(_), ReplyPart::Text(_)))
    })
}

/// Splits a response in the same way, and its steps into texts and calls.
pub(super) fn steps(parts: &[ReplyPart]) -> impl Iterator<Item = Step<'_>> {
    split(parts).map(|parts| {
        let mut step = Step::default();
        for part in parts {
            match part {
                ReplyPart::Text(text) => step.texts.push(text),
                ReplyPart::Call(call) => step.calls.push(call),
            }
        }
        step
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> ReplyPart {
        ReplyPart::Call(HandOverCall {
            id: id.to_owned(),
            name: "t".to_owned(),
            input: "{}".to_owned(),
            output: Vec::new(),
            is_error: false,
        })
    }

    #[test]
    fn a_response_is_split_before_each_text_that_follows_a_call() {
        let text = |text: &str| ReplyPart::Text(text.to_owned());
        let parts = [
            text("a"),
            text("b"),
            call("1"),
            call("2"),
            text("c"),
            call("3"),
            text("d"),
        ];
        let split: Vec<_> = steps(&parts).collect();
        let found: Vec<_> = split
            .iter()
            .map(|step| {
                let ids: Vec<_> = step.calls.iter().map(|call| call.id.as_str()).collect();
                (step.text(), ids.join(" "))
            })
            .collect();
        let expected = [("a\nb", "1 2"), ("c", "3"), ("d", "")];
        let expected = expected.map(|(text, ids)| (text.to_owned(), ids.to_owned()));
        assert_eq!(found, expected);
        assert_eq!(steps(&[call("1")]).count(), 1);
    }
}
