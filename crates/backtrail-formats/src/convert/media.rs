//! Images and documents: what a target does not take becomes a short text.

use backtrail::context::{HandOverMedia, HandOverPart};

use super::losses::{LossKind, Losses};

/// Which images and documents a target takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TakenMedia {
    /// In a user's message.
    pub(super) in_prompts: MediaTypes,
    /// In the result of a tool.
    pub(super) in_results: MediaTypes,
}

/// Which types of media are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaTypes {
    /// None.
    #[allow(dead_code, reason = "for targets that take only texts")]
    None,
    /// PNG, JPEG, GIF and WebP images.
    Images,
    /// Images and PDF documents.
    ImagesAndPdf,
}

impl MediaTypes {
    fn takes(self, media: &HandOverMedia) -> bool {
        match self {
            Self::None => false,
            Self::Images => media.media_type.starts_with("image/"),
            Self::ImagesAndPdf => true,
        }
    }

    fn keep(self, parts: &mut [HandOverPart], losses: &mut Losses) {
        for part in parts {
            let HandOverPart::Media(media) = part else {
                continue;
            };
            if !self.takes(media) {
                losses.add(LossKind::Media, 1);
                let text = format!("[{}, not shown here]", media.media_type);
                *part = HandOverPart::Text(text);
            }
        }
    }
}

impl TakenMedia {
    pub(super) fn keep_in_prompt(self, parts: &mut [HandOverPart], losses: &mut Losses) {
        self.in_prompts.keep(parts, losses);
    }

    pub(super) fn keep_in_result(self, parts: &mut [HandOverPart], losses: &mut Losses) {
        self.in_results.keep(parts, losses);
    }
}
