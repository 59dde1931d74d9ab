//! The shapes of a context.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The shape of a [`Context`](super::Context): the provider whose request it is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Shape {
    /// Backtrail's own form: `{"messages":[{"role","blocks"}]}`.
    #[serde(rename = "neutral")]
    Neutral,
    /// Anthropic's Messages: `{"system","messages"}`.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// OpenAI's Responses: `{"instructions","input"}`.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI's Chat Completions, which many other providers use: `{"messages"}`.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 4] = [
        Self::Neutral,
        Self::Anthropic,
        Self::OpenAi,
        Self::OpenAiChat,
    ];

    /// Returns the shape's name, as accepted by [`FromStr`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Neutral => "neutral",
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiChat => "openai-chat",
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Shape {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|shape| shape.as_str() == name)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "unknown context format `{name}`: use neutral, anthropic, openai or openai-chat"
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_found_by_its_name_and_an_error_lists_all_four() {
        for shape in Shape::ALL {
            assert_eq!(shape.as_str().parse::<Shape>().unwrap(), shape);
            assert_eq!(shape.to_string(), shape.as_str());
            let json = serde_json::to_string(&shape).unwrap();
            assert_eq!(json, format!("\"{shape}\""));
        }
        let error = "OpenAI".parse::<Shape>().unwrap_err().to_string();
        for shape in Shape::ALL {
            assert!(error.contains(shape.as_str()), "{error}");
        }
    }
}
