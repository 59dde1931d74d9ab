//! The limits of each shape.
//!
//! The limits are those that the providers enforce, as far as they are known. A history
//! that was never refused anywhere passes unchanged.

use std::borrow::Cow;

use super::parts::Medium;
use super::shape::Shape;

/// The longest Base64 of an image that Anthropic accepts.
const ANTHROPIC_IMAGE_MAX: usize = 5 * 1024 * 1024;

/// Where media are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaPlace {
    /// A user message.
    User,
    /// A tool's result.
    Result { is_error: bool },
    /// A system or assistant message.
    Elsewhere,
}

impl Shape {
    /// Returns whether a call's id is accepted unchanged.
    pub(super) fn takes_id(self, id: &str) -> bool {
        let fits = |max: usize, allowed: fn(u8) -> bool| {
            !id.is_empty() && id.len() <= max && id.bytes().all(allowed)
        };
        match self {
            Self::Neutral => true,
            Self::Anthropic | Self::OpenAi => fits(64, is_word),
            // Some providers with this shape use ids like `functions.bash:0`.
            Self::OpenAiChat => fits(40, |byte| byte.is_ascii_graphic()),
        }
    }

    /// Returns a tool's name in a form that the shape accepts.
    pub(super) fn name(self, name: &str) -> Cow<'_, str> {
        let max = match self {
            Self::Neutral => return Cow::Borrowed(name),
            Self::Anthropic => 128,
            Self::OpenAi | Self::OpenAiChat => 64,
        };
        if !name.is_empty() && name.len() <= max && name.bytes().all(is_word) {
            return Cow::Borrowed(name);
        }
        Cow::Owned(spell(name, max))
    }

    /// Returns whether media are accepted as such.
    pub(super) fn takes_medium(self, medium: &Medium<'_>, place: MediaPlace) -> bool {
        let Some(data) = &medium.data else {
            return false;
        };
        let class = Class::of(&medium.media_type);
        let has_place = match (self, place) {
            (Self::Neutral, _) => return true,
            (_, MediaPlace::Elsewhere) => false,
            // An error may only have text.
            (Self::Anthropic, MediaPlace::Result { is_error: true }) => false,
            (Self::Anthropic, _) => class != Class::Image || data.len() <= ANTHROPIC_IMAGE_MAX,
            (Self::OpenAi, _) => true,
            (Self::OpenAiChat, place) => place == MediaPlace::User && class == Class::Image,
        };
        has_place && class != Class::Other && is_base64(data)
    }

    /// Returns whether signed thinking by this model is accepted.
    pub(super) fn takes_thinking_of(self, model: Option<&str>) -> bool {
        match self {
            Self::Neutral => true,
            Self::Anthropic => matches!(Maker::of(model), Maker::Anthropic | Maker::Unknown),
            Self::OpenAi => Maker::of(model) == Maker::OpenAi,
            Self::OpenAiChat => false,
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Spells a name with characters that every provider accepts. A long name ends in a hash,
/// so that names with the same beginning stay different.
fn spell(name: &str, max: usize) -> String {
    const HASH: usize = 8;
    let mut spelled: String = name
        .chars()
        .take(max + 1)
        .map(|c| match u8::try_from(c) {
            Ok(byte) if is_word(byte) => c,
            _ => '_',
        })
        .collect();
    if spelled.is_empty() {
        return "tool".to_owned();
    }
    if spelled.len() > max {
        spelled.truncate(max - HASH - 1);
        spelled.push('_');
        spelled.push_str(&blake3::hash(name.as_bytes()).to_hex()[..HASH]);
    }
    spelled
}

/// The class of media, as providers distinguish it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Image,
    Pdf,
    Other,
}

impl Class {
    /// Decides by the media type, because the kinds have varying names.
    pub(super) fn of(media_type: &str) -> Self {
        match media_type {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Self::Image,
            "application/pdf" => Self::Pdf,
            _ => Self::Other,
        }
    }
}

/// Returns whether this is padded standard Base64.
fn is_base64(data: &str) -> bool {
    let body = data.strip_suffix('=').unwrap_or(data);
    let body = body.strip_suffix('=').unwrap_or(body);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !body.is_empty() && data.len().is_multiple_of(4) && body.bytes().all(allowed)
}

/// The maker of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Anthropic,
    OpenAi,
    Another,
    Unknown,
}

impl Maker {
    /// Decides by the first known part of the name, as in `us.anthropic.claude-…` or
    /// `openrouter/deepseek/…`.
    fn of(model: Option<&str>) -> Self {
        let Some(model) = model else {
            return Self::Unknown;
        };
        model
            .to_ascii_lowercase()
            .split(['/', '.', ':', '@', ' '])
            .map(Self::of_part)
            .find(|maker| *maker != Self::Unknown)
            .unwrap_or(Self::Unknown)
    }

    fn of_part(part: &str) -> Self {
        const OTHERS: [&str; 9] = [
            "gemini", "google", "deepseek", "qwen", "grok", "glm", "kimi", "mistral", "llama",
        ];
        let begins = |names: &[&str]| names.iter().any(|name| part.starts_with(name));
        let numbered = ["o1", "o3", "o4"].iter().any(|name| {
            part.strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        if begins(&["claude", "anthropic"]) {
            Self::Anthropic
        } else if numbered || begins(&["gpt", "chatgpt", "codex", "openai"]) {
            Self::OpenAi
        } else if begins(&OTHERS) {
            Self::Another
        } else {
            Self::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_the_first_part_of_its_name_that_tells() {
        let cases = [
            ("claude-opus-4-6", Maker::Anthropic),
            ("anthropic/some-model", Maker::Anthropic),
            ("us.anthropic.claude-sonnet-4-v1:0", Maker::Anthropic),
            ("GPT-5.3-codex", Maker::OpenAi),
            ("openai/whatever", Maker::OpenAi),
            ("o3", Maker::OpenAi),
            ("o4-mini", Maker::OpenAi),
            ("codex-mini-latest", Maker::OpenAi),
            ("models/gemini-3-pro", Maker::Another),
            ("openrouter/deepseek/deepseek-r1", Maker::Another),
            ("meta/llama-4", Maker::Another),
            ("o3x", Maker::Unknown),
            ("m-1", Maker::Unknown),
            ("", Maker::Unknown),
        ];
        for (model, maker) in cases {
            assert_eq!(Maker::of(Some(model)), maker, "{model}");
        }
        assert_eq!(Maker::of(None), Maker::Unknown);
    }

    #[test]
    fn a_name_that_is_taken_stays_and_any_other_becomes_one_that_is_taken() {
        assert_eq!(Shape::Anthropic.name("mcp__a-b"), "mcp__a-b");
        assert_eq!(Shape::OpenAi.name("git diff é"), "git_diff__");
        assert_eq!(Shape::OpenAiChat.name(""), "tool");
        assert_eq!(Shape::Neutral.name("git diff"), "git diff");
        for (shape, max) in [(Shape::Anthropic, 128), (Shape::OpenAi, 64)] {
            let (one, two) = ("x".repeat(300), "x".repeat(301));
            assert_eq!(shape.name(&one).len(), max);
            assert_ne!(shape.name(&one), shape.name(&two));
            let fits = "x".repeat(max);
            assert_eq!(shape.name(&fits), fits);
        }
    }

    #[test]
    fn base64_is_distinguished_from_lookalikes() {
        for good in ["QUJD", "QUI=", "QQ==", "+/+/"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in ["", "=", "====", "QUJ", "QU-_", "QU\nJ", "Q===", "QU=D"] {
            assert!(!is_base64(bad), "{bad:?}");
        }
    }
}
