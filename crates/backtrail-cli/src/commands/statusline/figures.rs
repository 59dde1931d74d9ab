//! The figures of the line, each with where it comes from.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use backtrail::{Store, StoreOptions, Timestamp};
use backtrail_formats::{StatusReport, UsageLimit, context_at_end};
use backtrail_index::{KnownSpending, Money, Spending, SpendingQuestion, known_spending};
use serde_json::{Value, json};

use super::undo::Undo;
use crate::files;
use crate::text::{cost, count, money, one_line};
use crate::ui::Ui;
use crate::when;

/// The context of a model whose size is not reported.
const CONTEXT: u64 = 200_000;
const LONG_CONTEXT: u64 = 1_000_000;
/// How much of a transcript's end is read.
const TAIL: u64 = 256 << 10;
/// How wide a name may be.
const NAME: usize = 40;

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The agent reports it.
    Official,
    /// It follows from recorded calls and known prices.
    Computed,
    Estimated,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::Computed => "computed",
            Self::Estimated => "estimated",
        }
    }
}

/// A figure, as it is shown and as JSON.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) text: String,
    json: Value,
}

impl Figure {
    /// Makes a figure; its text gets the mark of its source.
    fn new(text: String, mut json: Value, source: Source) -> Self {
        json["source"] = source.as_str().into();
        let text = match source {
            Source::Computed if !text.ends_with('+') => format!("{text}*"),
            Source::Estimated => format!("~{text}"),
            _ => text,
        };
        Self { text, json }
    }

    /// Makes a figure of a computed cost; none if nothing was spent.
    fn of_cost(spending: &Spending) -> Option<Self> {
        let text = cost(spending);
        let is_known = !text.is_empty() && text != "unpriced";
        let json = json!({
            "usd": spending.cost.dollars(),
            "lower_bound": text.ends_with('+'),
        });
        is_known.then(|| Self::new(text, json, Source::Computed))
    }
}

/// All figures; a missing one is not known.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) model: Option<Figure>,
    pub(super) session_cost: Option<Figure>,
    pub(super) today: Option<Figure>,
    pub(super) block: Option<Figure>,
    pub(super) context: Option<Figure>,
    pub(super) quota: Option<Figure>,
    pub(super) undo: Option<Figure>,
    /// Whether the undo figure is a warning.
    pub(super) is_unprotected: bool,
}

impl Figures {
    /// Finds what is known at once.
    pub(super) fn find(report: &StatusReport, ui: &Ui) -> Self {
        let store = ui.store_dir().ok();
        let store = store.and_then(|(dir, _)| StoreOptions::new().open(dir).ok());
        let known = store.as_ref().map(|store| spending(store, report));
        let known = known.unwrap_or_default();
        let undo = Undo::look(report, store.as_ref());
        let official = report.cost_usd.map(|dollars| {
            let json = json!({"usd": dollars, "lower_bound": false});
            Figure::new(money(Money::from_dollars(dollars)), json, Source::Official)
        });
        let computed = || known.session.as_ref().and_then(Figure::of_cost);
        Self {
            model: report.model.as_deref().and_then(model),
            session_cost: official.or_else(computed),
            today: known.today.as_ref().and_then(Figure::of_cost),
            block: known.block.as_ref().and_then(block),
            context: context(report),
            quota: quota(&report.limits),
            is_unprotected: matches!(undo, Some(Undo::NotProtected(_))),
            undo: undo.map(of_undo),
        }
    }

    pub(super) fn as_json(&self) -> Value {
        let all = [
            ("model", &self.model),
            ("session_cost", &self.session_cost),
            ("today", &self.today),
            ("block", &self.block),
            ("context", &self.context),
            ("quota", &self.quota),
            ("undo", &self.undo),
        ];
        let json = |figure: &Option<Figure>| figure.as_ref().map(|figure| figure.json.clone());
        let all = all.map(|(name, figure)| (name.to_owned(), json!(json(figure))));
        Value::Object(all.into_iter().collect())
    }
}

/// Asks the catalogue as it was committed last.
fn spending(store: &Store, report: &StatusReport) -> KnownSpending {
    let now = Timestamp::from(SystemTime::now());
    let question = SpendingQuestion {
        session: report.session.as_deref(),
        today: when::start_of_today().unwrap_or(now),
        now,
    };
    known_spending(store, &question)
}

fn model(name: &str) -> Option<Figure> {
    let name = one_line(name, NAME);
    let json = json!({"name": name});
    (!name.is_empty()).then(|| Figure::new(name, json, Source::Official))
}

fn block((start, spending): &(Timestamp, Spending)) -> Option<Figure> {
    let mut figure = Figure::of_cost(spending)?;
    figure.json["start"] = json!(start);
    Some(figure)
}

/// Returns the share of the context: as the agent reports it, else by its last call.
fn context(report: &StatusReport) -> Option<Figure> {
    let figure = |percent: f64, tokens: Option<u64>, source| {
        let json = json!({"percent": percent, "tokens": tokens});
        Figure::new(format!("{}% context", percent.round()), json, source)
    };
    if let Some(percent) = report.context_percent {
        return Some(figure(percent, report.context_tokens, Source::Official));
    }
    let at_end = || context_at_end(&tail(report.transcript.as_deref()?)?);
    let tokens = report.context_tokens.or_else(at_end)?;
    let size = report.context_size.unwrap_or(match tokens > CONTEXT {
        true => LONG_CONTEXT,
        false => CONTEXT,
    });
    let percent = tokens as f64 * 100.0 / size as f64;
    (percent <= 100.0).then(|| figure(percent, Some(tokens), Source::Estimated))
}

/// Reads the end of a transcript, if it is a regular file.
fn tail(path: &Path) -> Option<Vec<u8>> {
    // Opening anything else might wait.
    let length = path.metadata().ok().filter(|it| it.is_file())?.len();
    let mut file = files::open(path).ok()?;
    let from = length.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn quota(limits: &[UsageLimit]) -> Option<Figure> {
    if limits.is_empty() {
        return None;
    }
    let texts = limits.iter();
    let texts = texts.map(|limit| format!("{} {}%", limit.span, limit.used_percent.round()));
    let texts: Vec<String> = texts.collect();
    let limit = |limit: &UsageLimit| {
        let resets = limit.resets_at.and_then(|at| at.checked_mul(1000));
        json!({
            "span": limit.span,
            "used_percent": limit.used_percent,
            "resets_at": resets.and_then(Timestamp::from_millis),
        })
    };
    let json = json!({"limits": limits.iter().map(limit).collect::<Vec<_>>()});
    Some(Figure::new(texts.join(", "), json, Source::Official))
}

/// Returns the figure about undo. It is ours alone, so that only an estimate has a mark.
fn of_undo(undo: Undo) -> Figure {
    match undo {
        Undo::NotProtected(reason) => {
            let reason = one_line(&reason, NAME);
            Figure {
                text: format!("NOT PROTECTED ({reason})"),
                json: json!({"ready": false, "reason": reason, "source": "computed"}),
            }
        }
        Undo::Ready { files, is_exact } => {
            let (about, source) = match is_exact || files.is_none() {
                true => ("", Source::Computed),
                false => ("~", Source::Estimated),
            };
            let files_text = files.map(|files| format!(": {about}{}", count(files, "file")));
            Figure {
                text: format!("undo ready{}", files_text.unwrap_or_default()),
                json: json!({"ready": true, "files": files, "source": source.as_str()}),
            }
        }
    }
}
