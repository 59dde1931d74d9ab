//! Sessions for Qwen Code: a record for each message and each result, in a chain by `parentUuid`,
//! with parts as Google's API has them.

use std::io::{self, Write};

use backtrail::context::{HandOverCall, HandOverContent, HandOverMessage, HandOverPart, ReplyPart};
use backtrail::{Fields, Json, Timestamp};

use super::google::{part, reply_part, response};
use super::media::{MediaTypes, TakenMedia};
use super::steps::split;
use super::tools::ToolRow;
use super::{
    OutgoingSession, TargetFormat, joined_text, object, to_json, tool_table, with_millis,
    write_line,
};

pub(super) struct QwenCodeTarget;

/// The version whose records these are.
const VERSION: &str = "0.24.4";

impl TargetFormat for QwenCodeTarget {
    fn tools(&self) -> &'static [ToolRow] {
        tool_table::QWEN_CODE
    }

    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::ImagesAndPdf,
            in_results: MediaTypes::ImagesAndPdf,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut chain = Chain {
            session,
            last: None,
            records: 0,
        };
        for message in &session.messages {
            match &message.content {
                HandOverContent::User(parts) => chain.user(message, parts, out)?,
                HandOverContent::Assistant { model, parts } => {
                    for parts in split(parts) {
                        chain.assistant(message, model.as_deref(), parts, out)?;
                    }
                }
            }
        }
        chain.title(out)
    }
}

/// The records so far.
struct Chain<'s> {
    session: &'s OutgoingSession<'s>,
    last: Option<String>,
    records: usize,
}

impl Chain<'_> {
    fn user(
        &mut self,
        at: &HandOverMessage,
        parts: &[HandOverPart],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let parts: Vec<Json> = parts.iter().map(part).collect();
        let mut record = self.record("user", "real_user", self.session.time(at));
        record.push("message", object! {"role": "user", "parts": parts});
        write_line(out, &to_json(&record))
    }

    /// Writes a response, and the results of its calls.
    fn assistant(
        &mut self,
        at: &HandOverMessage,
        model: Option<&str>,
        parts: &[ReplyPart],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let content: Vec<Json> = parts.iter().map(reply_part).collect();
        let mut record = self.record("assistant", "assistant_output", self.session.time(at));
        if let Some(model) = model {
            record.push("model", to_json(model));
        }
        record.push("message", object! {"role": "model", "parts": content});
        write_line(out, &to_json(&record))?;
        for part in parts {
            if let ReplyPart::Call(call) = part {
                self.result(at, call, out)?;
            }
        }
        Ok(())
    }

    fn result(
        &mut self,
        at: &HandOverMessage,
        call: &HandOverCall,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let media = call.output.iter();
        let media = media.filter(|part| matches!(part, HandOverPart::Media(_)));
        let parts = [response(call, media.map(part).collect())];
        let status = if call.is_error { "error" } else { "success" };
        let mut record = self.record("tool_result", "tool_result", self.session.time(at));
        record.push("message", object! {"role": "user", "parts": parts});
        let shown = object! {
            "callId": call.id,
            "status": status,
            "resultDisplay": joined_text(&call.output),
            "executionStatus": status,
        };
        record.push("toolCallResult", shown);
        write_line(out, &to_json(&record))
    }

    fn title(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let last = self.session.messages.last();
        let at = last.map_or(self.session.new.at, |last| self.session.time(last));
        let mut record = self.record("system", "system", at);
        record.push("subtype", to_json("custom_title"));
        let title = object! {"customTitle": self.session.title, "titleSource": "manual"};
        record.push("systemPayload", title);
        write_line(out, &to_json(&record))
    }

    /// Begins the next record.
    fn record(&mut self, kind: &str, provenance: &str, at: Timestamp) -> Fields {
        let uuid = self.session.uuid(self.records);
        let mut fields = Fields::default();
        fields.push("uuid", to_json(&uuid));
        fields.push("parentUuid", to_json(&self.last));
        fields.push("sessionId", to_json(&self.session.new.id));
        fields.push("timestamp", to_json(&with_millis(at)));
        fields.push("type", to_json(kind));
        fields.push("provenance", to_json(provenance));
        fields.push("cwd", to_json(self.session.directory()));
        fields.push("version", to_json(VERSION));
        self.last = Some(uuid);
        self.records += 1;
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{short, write};

    #[test]
    fn the_title_is_at_the_end_where_qwen_code_looks_for_it() {
        let lines = write("qwen-code", short("fix it")).lines();
        let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str()).collect();
        let expected = ["user", "assistant", "tool_result", "system"].map(Some);
        assert_eq!(kinds, expected);
        assert_eq!(lines[3]["subtype"], "custom_title");
        assert_eq!(lines[3]["parentUuid"], lines[2]["uuid"]);
    }
}
