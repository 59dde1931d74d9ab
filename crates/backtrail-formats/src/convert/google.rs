//! The parts of messages as Google's API has them: for Gemini CLI, and for Qwen Code, which comes
//! from it.

use backtrail::Json;
use backtrail::context::{HandOverCall, HandOverPart, ReplyPart};

use super::{joined_text, object, raw};

/// Returns a text or an image.
pub(super) fn part(part: &HandOverPart) -> Json {
    match part {
        HandOverPart::Text(text) => object! {"text": text},
        HandOverPart::Media(media) => {
            let data = object! {"mimeType": media.media_type, "data": media.data};
            object! {"inlineData": data}
        }
    }
}

/// Returns a part of a response.
pub(super) fn reply_part(part: &ReplyPart) -> Json {
    match part {
        ReplyPart::Text(text) => object! {"text": text},
        ReplyPart::Call(call) => {
            let function = object! {"id": call.id, "name": call.name, "args": raw(&call.input)};
            object! {"functionCall": function}
        }
    }
}

/// Returns the result of a call, with its media inside.
pub(super) fn response(call: &HandOverCall, media: Vec<Json>) -> Json {
    let text = joined_text(&call.output);
    let response = match call.is_error {
        true => object! {"error": text},
        false => object! {"output": text},
    };
    let function = match media.is_empty() {
        true => object! {"id": call.id, "name": call.name, "response": response},
        false => object! {
            "id": call.id,
            "name": call.name,
            "response": response,
            "parts": media,
        },
    };
    object! {"functionResponse": function}
}
