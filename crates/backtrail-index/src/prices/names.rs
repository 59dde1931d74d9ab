//! Finds the model that a name refers to.
//!
//! Agents, gateways and providers spell one model in many ways. A name is split into the
//! seller and the model's name there, which is then looked up. Many known rules are open
//! ("begins with `claude-opus-4-1`", "contains …") and would give
//! `claude-opus-4-1-my-tuning` the price of a model that it is not. So the part of the
//! name that decided is determined, and the text around it must be a date, a revision or
//! one of a few words that do not change a price.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use genai_prices::{Calculator, PriceCalculation, PriceRequest, Usage};

/// Longer names are not looked up.
const LONGEST: usize = 200;
/// No known name contains this.
const NOISE: &str = "zzqx";

/// A model with a price: its seller, and the name to look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    provider: String,
    name: String,
    /// Its id in the price list.
    id: String,
}

impl Known {
    /// Returns the cost of a call.
    pub(super) fn ask(&self, at: SystemTime, usage: &Usage) -> Option<PriceCalculation> {
        let request = PriceRequest::new(&self.name, usage)
            .with_provider_id(&self.provider)
            .with_timestamp(at);
        Calculator::bundled().calculate(&request).ok()
    }

    /// Returns whether the name says that the model is free.
    pub(super) fn is_free(&self) -> bool {
        self.name.ends_with(":free")
    }

    pub(super) fn is_claude(&self) -> bool {
        self.id.contains("claude")
    }
}

/// Finds the model that a name refers to, if it has a price.
pub(super) fn find(name: &str) -> Option<Known> {
    let name = name.trim().to_ascii_lowercase();
    if name.is_empty() || name.len() > LONGEST || !name.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    let name = without_window(&name);
    readings(name).into_iter().find_map(|reading| {
        let as_is = Some(reading.name);
        let names = [as_is, without_effort(reading.name)];
        // A price list may have some dates of a model, and the model has others.
        let undated = names.map(|name| name.and_then(without_date));
        let names = names.into_iter().chain(undated).flatten();
        let mut readings = names.map(|name| Reading { name, ..reading });
        readings.find_map(Reading::known)
    })
}

/// One way to read a name.
#[derive(Debug, Clone, Copy)]
struct Reading<'a> {
    /// The seller, if given.
    provider: Option<&'a str>,
    name: &'a str,
}

/// Returns the ways to read a name, the likeliest first.
fn readings(name: &str) -> Vec<Reading<'_>> {
    let of = |provider: &'static str, name| Reading {
        provider: Some(provider),
        name,
    };
    if name.starts_with("accounts/fireworks/") {
        return vec![of("fireworks", name)];
    }
    if name.starts_with("arn:aws") {
        let last = name.rsplit('/').next().unwrap_or(name);
        return vec![of("aws", last)];
    }
    // `models/x`, `publishers/google/models/x`
    let name = match name.rfind("models/") {
        Some(at) if at == 0 || name[..at].ends_with('/') => &name[at + "models/".len()..],
        _ => name,
    };
    match name.split_once('/') {
        Some(("litellm" | "proxy", rest)) => readings(rest),
        Some((seller, rest)) => match provider(seller) {
            Some(provider @ ("aws" | "openrouter")) => vec![of(provider, rest)],
            Some(provider) => vec![of(provider, rest), of("openrouter", name)],
            None => vec![of("openrouter", name)],
        },
        None if is_bedrock(name) => vec![of("aws", name)],
        None => vec![Reading {
            provider: None,
            name,
        }],
    }
}

/// Returns the provider for a prefix of model names.
fn provider(name: &str) -> Option<&'static str> {
    Some(match name {
        "anthropic" => "anthropic",
        "openai" | "openai-codex" | "chatgpt" => "openai",
        "google" | "gemini" | "google-vertex" | "google-genai" | "vertex" | "vertex_ai"
        | "vertexai" => "google",
        "aws" | "bedrock" | "amazon-bedrock" | "bedrock_converse" => "aws",
        "azure" | "azure_ai" | "azure-openai" => "azure",
        "openrouter" => "openrouter",
        "github-copilot" | "github_copilot" | "copilot" => "github-copilot",
        "x-ai" | "xai" => "x-ai",
        "deepseek" => "deepseek",
        "mistral" | "mistralai" => "mistral",
        "moonshot" | "moonshotai" => "moonshotai",
        "groq" => "groq",
        "cerebras" => "cerebras",
        "cohere" => "cohere",
        "fireworks" | "fireworks_ai" => "fireworks",
        "together" | "together_ai" | "together-ai" => "together",
        "perplexity" => "perplexity",
        "minimax" => "minimax",
        "zai" | "z-ai" => "zai",
        "zhipuai" => "zhipuai",
        _ => return None,
    })
}

/// Returns whether a name is a Bedrock name: `us.anthropic.claude-…`, `amazon.nova-…`.
fn is_bedrock(name: &str) -> bool {
    let mut parts = name.split('.');
    let first = parts.next().unwrap_or_default();
    let maker = if is_region(first) {
        parts.next().unwrap_or_default()
    } else {
        first
    };
    is_maker(maker) && parts.next().is_some()
}

fn is_region(part: &str) -> bool {
    matches!(
        part,
        "us" | "eu" | "apac" | "jp" | "au" | "ca" | "in" | "sa" | "us-gov" | "global"
    )
}

fn is_maker(part: &str) -> bool {
    matches!(
        part,
        "anthropic" | "amazon" | "meta" | "mistral" | "deepseek" | "openai" | "qwen" | "writer"
    )
}

/// Removes the window size that an agent appended to a name: `claude-…[1m]`.
fn without_window(name: &str) -> &str {
    match name.rsplit_once('[') {
        Some((before, window)) if !before.is_empty() && window.ends_with(']') => before,
        _ => name,
    }
}

/// Removes the reasoning effort, which does not change prices: `gpt-5-high`.
fn without_effort(name: &str) -> Option<&str> {
    let (before, effort) = name.rsplit_once(['-', ':'])?;
    is_effort(effort).then_some(before)
}

/// Removes a date or `latest`, and a revision after it, from the end of a name: all of these
/// are the same model (`claude-opus-4-20250514`, `gpt-5-2025-08-07`, `claude-opus-4@20250514`).
/// A revision alone is part of the name: `titan-embed-text-v2` is not `titan-embed-text`.
fn without_date(name: &str) -> Option<&str> {
    let starts = name.match_indices(is_separator).map(|(at, _)| at);
    let mut endings = starts.filter(|at| *at > 0 && is_dated_ending(&name[*at..]));
    endings.next().map(|at| &name[..at])
}

/// Returns whether the text after a name is a date or `latest`, and perhaps a revision.
fn is_dated_ending(text: &str) -> bool {
    let words: Vec<&str> = text.split(is_separator).skip(1).collect();
    let revision = match words.as_slice() {
        ["latest", rest @ ..] => rest,
        [date, rest @ ..] if is_date(date) => rest,
        [year, month, day, rest @ ..]
            if year.len() == 4 && month.len() == 2 && is_date(&[*year, *month, *day].concat()) =>
        {
            rest
        }
        _ => return false,
    };
    match revision {
        [] => true,
        [version] | [version, "0"] => is_revision(version),
        _ => false,
    }
}

fn is_separator(c: char) -> bool {
    matches!(c, '-' | '@' | ':')
}

/// Returns whether a word is a day of this century: `20250514`.
fn is_date(word: &str) -> bool {
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
    let is_digits = word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit());
    let month = number(word.get(4..6)).is_some_and(|month| (1..=12).contains(&month));
    let day = number(word.get(6..8)).is_some_and(|day| (1..=31).contains(&day));
    is_digits && word.starts_with("20") && month && day
}

/// Returns whether a word is a revision: `v1`.
fn is_revision(word: &str) -> bool {
    matches!(word, "v1" | "v2" | "v3")
}

fn is_effort(word: &str) -> bool {
    matches!(
        word,
        "thinking" | "minimal" | "low" | "medium" | "high" | "xhigh"
    )
}

impl Reading<'_> {
    fn known(self) -> Option<Known> {
        let hit = ask(self.provider, self.name)?;
        let whole = self.provider == Some("openai") || self.provider.is_none();
        let tuned = whole && self.name.starts_with("ft:");
        (tuned || hit.is_named_by(self.name)).then(|| Known {
            provider: hit.provider,
            name: self.name.to_owned(),
            id: hit.model,
        })
    }
}

/// The price list's entry for a name.
#[derive(Debug, PartialEq, Eq)]
struct Hit {
    provider: String,
    model: String,
}

impl Hit {
    /// Returns whether a name is the model's own and does not merely contain it.
    fn is_named_by(&self, name: &str) -> bool {
        let leads_here = |name: &str| ask(Some(&self.provider), name).as_ref() == Some(self);
        let open_behind = |name: &str| leads_here(&format!("{name}-{NOISE}"));
        let open_before = |name: &str| leads_here(&format!("{NOISE}-{name}"));
        let mut core = name;
        if open_behind(core) {
            // The shortest deciding prefix is what the rule says.
            let end = (1..core.len()).find(|end| open_behind(&core[..*end]));
            let end = end.unwrap_or(core.len());
            // Some rules end within a date, or behind the separator before it.
            let begins_ending = core[end..].is_empty() || core[end..].starts_with(is_separator);
            let ending = match begins_ending {
                true => end,
                false => core[..end].rfind(is_separator).unwrap_or(0),
            };
            let is_family = || begins_ending || leads_here(&core[..ending]);
            if !is_ending(&core[ending..]) || !is_family() {
                return false;
            }
            core = &core[..ending];
        }
        let begin = (0..core.len()).rev().find(|at| open_before(&core[*at..]));
        begin.is_none_or(|begin| is_beginning(&core[..begin]))
    }
}

fn ask(provider: Option<&str>, name: &str) -> Option<Hit> {
    let usage = Usage::new();
    let mut request = PriceRequest::new(name, &usage).with_timestamp(day_of_interest());
    if let Some(provider) = provider {
        request = request.with_provider_id(provider);
    }
    let found = Calculator::bundled().calculate(&request).ok()?;
    Some(Hit {
        provider: found.provider_id,
        model: found.model_id,
    })
}

/// Names mean the same at any time, so any day will do.
fn day_of_interest() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_767_225_600)
}

/// Returns whether the text before a name only says where the model runs:
/// `us.anthropic.`.
fn is_beginning(text: &str) -> bool {
    text.is_empty()
        || text.strip_suffix('.').is_some_and(|text| {
            text.split('.')
                .all(|part| is_region(part) || is_maker(part))
        })
}

/// Returns whether the text after a name is a date, a revision or a word that does not
/// change a price: `-20250805`, `-preview-05-06`, `@20250805`, `-v1:0`, `-latest`.
fn is_ending(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let words: Vec<&str> = text.split(is_separator).collect();
    let digits = |at: usize, count: usize| {
        words
            .get(at)
            .is_some_and(|word| word.len() == count && word.bytes().all(|b| b.is_ascii_digit()))
    };
    let fits = |at: usize| {
        let word = words[at];
        // A month and a day, after a year or alone.
        let pair = digits(at, 2) && (digits(at - 1, 2) || digits(at - 1, 4) || digits(at + 1, 2));
        pair || is_date(word)
            || digits(at, 6)
            || digits(at, 4)
            || (digits(at, 3) && word.starts_with('0'))
            || is_revision(word)
            || (digits(at, 1) && is_revision(words[at - 1]))
            || is_effort(word)
            || matches!(
                word,
                "latest" | "preview" | "exp" | "experimental" | "beta" | "reasoning"
            )
    };
    // A separator must follow the name.
    words[0].is_empty() && words.len() > 1 && (1..words.len()).all(fits)
}
