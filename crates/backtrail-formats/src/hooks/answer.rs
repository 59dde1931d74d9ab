//! What a hook prints for its agent.

use serde_json::{Value, json};

use super::agents::Answers;
use super::{HookKind, agent_named};

/// Returns the text that a hook prints on stdout: one JSON object, or nothing. It never
/// refuses, allows or changes anything.
///
/// `shown` is a line for the user and `context` a line for the model. Where the agent takes
/// neither for this event ([`hook_shows`], [`hook_takes_context`]), it is dropped.
pub fn hook_answer(
    agent: &str,
    kind: &HookKind,
    shown: Option<&str>,
    context: Option<&str>,
) -> Option<String> {
    let answers = agent_named(agent)?.answers;
    let shown = shown.filter(|_| answers.shows(kind));
    let context = context.filter(|_| answers.takes_context(kind));
    let answer = answers.answer(kind, shown, context)?;
    Some(answer.to_string())
}

/// Returns whether an agent shows the user a line that a hook returns for this event.
pub fn hook_shows(agent: &str, kind: &HookKind) -> bool {
    agent_named(agent).is_some_and(|agent| agent.answers.shows(kind))
}

/// Returns whether an agent passes a line that a hook returns for this event to the model.
pub fn hook_takes_context(agent: &str, kind: &HookKind) -> bool {
    agent_named(agent).is_some_and(|agent| agent.answers.takes_context(kind))
}

impl Answers {
    fn shows(self, kind: &HookKind) -> bool {
        use HookKind as Kind;
        match self {
            Self::Claude { .. } => matches!(
                kind,
                Kind::SessionStart { .. }
                    | Kind::Prompt { .. }
                    | Kind::ToolStart { .. }
                    | Kind::ToolEnd { .. }
                    | Kind::TurnEnd
            ),
            Self::Own => matches!(kind, Kind::SessionStart { .. } | Kind::Prompt { .. }),
            Self::Copilot | Self::Cline => false,
        }
    }

    fn takes_context(self, kind: &HookKind) -> bool {
        use HookKind as Kind;
        match self {
            Self::Claude { .. } => {
                matches!(kind, Kind::SessionStart { .. } | Kind::Prompt { .. })
            }
            Self::Copilot | Self::Own => matches!(kind, Kind::Prompt { .. }),
            Self::Cline => matches!(kind, Kind::ToolStart { .. }),
        }
    }

    fn answer(self, kind: &HookKind, shown: Option<&str>, context: Option<&str>) -> Option<Value> {
        let mut answer = json!({});
        match self {
            Self::Claude { prompt, .. } => {
                set(&mut answer, "systemMessage", shown);
                if let Some(context) = context {
                    let event = match kind {
                        HookKind::SessionStart { .. } => "SessionStart",
                        _ => prompt,
                    };
                    answer["hookSpecificOutput"] =
                        json!({"hookEventName": event, "additionalContext": context});
                }
            }
            Self::Copilot => set(&mut answer, "additionalContext", context),
            Self::Cline if matches!(kind, HookKind::ToolStart { .. }) => {
                answer["cancel"] = false.into();
                set(&mut answer, "contextModification", context);
            }
            Self::Cline => {}
            Self::Own => {
                set(&mut answer, "show", shown);
                set(&mut answer, "context", context);
            }
        }
        let is_needed = answer.as_object().is_some_and(|fields| !fields.is_empty());
        (is_needed || self.is_never_empty()).then_some(answer)
    }

    fn is_never_empty(self) -> bool {
        matches!(self, Self::Claude { never_empty, .. } if never_empty)
    }
}

fn set(answer: &mut Value, name: &str, line: Option<&str>) {
    if let Some(line) = line {
        answer[name] = line.into();
    }
}
