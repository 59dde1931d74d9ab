//! Options for a new session.

use std::path::Path;

use super::note::{Note, check_texts};
use crate::error::Result;
use crate::log::Durability;
use crate::trail::present::{Present, WorkspaceRef};
#[cfg(feature = "snapshots")]
use crate::workspace::Workspace;

/// Options for a new session.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    pub(super) present: Present,
    pub(super) durability: Option<Durability>,
    pub(super) name: Option<String>,
}

impl SessionOptions {
    /// Creates options without any details.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the title.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.present.title = Some(title.into());
        self
    }

    /// Sets the tags.
    #[must_use]
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.present.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the agent.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.present.agent = Some(agent.into());
        self
    }

    /// Sets the agent that keeps this conversation itself. Here the session only mirrors
    /// it: the conversation cannot be rewound, and is continued in a fork. Files can be
    /// rewound as usual.
    #[must_use]
    pub fn belongs_to(mut self, agent: impl Into<String>) -> Self {
        self.present.belongs_to = Some(agent.into());
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.present.model = Some(model.into());
        self
    }

    /// Sets the root of the directory that the session works in.
    #[must_use]
    pub fn workspace_root(mut self, root: &Path) -> Self {
        self.present.workspace = Some(WorkspaceRef::new(root));
        self
    }

    /// Sets the workspace that the session works in.
    #[must_use]
    #[cfg(feature = "snapshots")]
    pub fn workspace(mut self, workspace: &Workspace) -> Self {
        self.present.workspace = Some(workspace.reference());
        self
    }

    /// Sets the title, which also becomes a reference to the session, as the name of a fork.
    #[cfg(feature = "snapshots")]
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self.title(name)
    }

    /// Sets the workspace unless there is one.
    #[cfg(feature = "snapshots")]
    pub(crate) fn or_workspace(mut self, workspace: &Workspace) -> Self {
        let known = &mut self.present.workspace;
        known.get_or_insert_with(|| workspace.reference());
        self
    }

    pub(crate) fn asked_durability(&self) -> Option<Durability> {
        self.durability
    }

    /// Returns the options as a note, if there is anything to note.
    pub(crate) fn as_note(&self) -> Option<Note> {
        (self.present != Present::default()).then(|| Note::of(self.present.clone()))
    }

    pub(crate) fn check(&self) -> Result<()> {
        let present = &self.present;
        let root = present.workspace.iter().map(WorkspaceRef::text);
        let texts = [
            &present.title,
            &present.agent,
            &present.model,
            &present.belongs_to,
        ];
        let texts = texts.into_iter().flatten().chain(root);
        check_texts(texts.chain(&present.tags))
    }

    /// Sets when an append returns, overriding the store's setting.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }
}
