//! The output of a tool as text.

use std::borrow::Cow;

use super::Block;
use crate::json::{Fields, Json, Text, decoded_len};

/// Returns the length of a tool's output as text.
pub(crate) fn output_len(output: &Json) -> usize {
    decoded_len(output.as_str()).unwrap_or_else(|| output_text(output).len())
}

/// Returns a tool's output as text: a string's content, the texts of a list of blocks
/// joined by newlines, or the JSON of anything else.
pub(crate) fn output_text(output: &Json) -> Cow<'_, str> {
    let json = output.as_str();
    if json.starts_with('"') {
        return match output.parse::<Text>() {
            Ok(text) => Cow::Owned(text.as_str().to_owned()),
            Err(_) => Cow::Borrowed(json),
        };
    }
    match output.parse::<Vec<Block>>() {
        Ok(blocks) if blocks.iter().all(is_typed) => Cow::Owned(joined_texts(&blocks).into_owned()),
        _ => Cow::Borrowed(json),
    }
}

/// Returns whether this has a block's `type`: `Block` parses any JSON.
fn is_typed(block: &Block) -> bool {
    let Block::Other(json) = block else {
        return true;
    };
    json.parse::<Fields>()
        .is_ok_and(|fields| fields.get("type").is_some())
}

/// Returns the texts of blocks, joined by newlines.
pub(super) fn joined_texts(blocks: &[Block]) -> Cow<'_, str> {
    let mut texts = blocks.iter().filter_map(|block| match block {
        Block::Text(block) => Some(block.text.as_str()),
        _ => None,
    });
    let first = texts.next().unwrap_or_default();
    texts.fold(Cow::Borrowed(first), |all, text| {
        Cow::Owned(format!("{all}\n{text}"))
    })
}
