//! What lies over the panels: a search, a question, a plan, a text.

use crate::app::field::Field;
use crate::command::Command;
use crate::cursor::Cursor;
use crate::fuzzy;
use crate::request::Request;
use backtrail_view::library::{
    Action, BlameLine, Failure, Line, Moment, OnConflict, Place, Plan, Scope, SearchHit,
    SearchResults, Span,
};

/// Something over the panels. It gets all keys.
#[derive(Debug)]
pub(crate) enum Overlay {
    /// A search over everything.
    Search(SearchBox),
    /// A question that is answered by a line of text.
    Input(InputBox),
    /// A choice from a list.
    Choose(ChooseBox),
    /// What an action would do.
    Plan(PlanBox),
    /// A text to read.
    Text(TextBox),
    /// Who wrote each line of a file.
    Blame(BlameBox),
    /// What is possible here.
    Help(Cursor),
    /// What went wrong.
    Failure(Failure),
}

/// A search as it is typed.
#[derive(Debug, Clone)]
pub(crate) struct SearchBox {
    pub(crate) field: Field,
    pub(crate) scope: Scope,
    pub(crate) results: SearchResults,
    /// The selected match.
    pub(crate) cursor: Cursor,
    pub(crate) is_loading: bool,
    pub(crate) error: Option<String>,
}

impl SearchBox {
    pub(crate) fn new(scope: Scope) -> Self {
        Self {
            field: Field::default(),
            scope,
            results: SearchResults::default(),
            cursor: Cursor::default(),
            is_loading: false,
            error: None,
        }
    }

    pub(crate) fn words(&self) -> &str {
        self.field.text().trim()
    }

    /// Searches for what is typed now.
    pub(crate) fn ask(&mut self) -> Option<Request> {
        if self.words().is_empty() {
            self.results = SearchResults::default();
            self.error = None;
            self.is_loading = false;
            return None;
        }
        self.is_loading = true;
        Some(Request::Search(self.words().to_owned(), self.scope))
    }

    pub(crate) fn set(&mut self, answer: Result<SearchResults, String>) {
        self.is_loading = false;
        self.error = None;
        match answer {
            Ok(results) => self.results = results,
            Err(message) => {
                // Enter must not open what is no longer shown.
                self.results = SearchResults::default();
                self.error = Some(message);
            }
        }
        self.cursor = Cursor::default();
    }

    pub(crate) fn selected(&self) -> Option<&SearchHit> {
        self.results.hits.get(self.cursor.selected)
    }
}

/// Returns the words of a match, in lower case. A library writes them in another style.
pub(crate) fn words_of(hit: &SearchHit) -> Vec<String> {
    let spans = hit.snippet.iter().flatten();
    let marked = spans.filter(|span| span.style != anstyle::Style::new());
    let words = marked.flat_map(|span| span.text.split(|c: char| !c.is_alphanumeric()));
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// What a line of text is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Filters the sessions as it is typed.
    Filter,
    /// The title of a session.
    Title(String),
    /// Tags of a session to add and remove.
    Tag(String),
    /// The directory of a fork.
    Fork(Place),
    /// The file of an export: session and format.
    Export(String, String),
}

/// A question that is answered by a line of text.
#[derive(Debug)]
pub(crate) struct InputBox {
    pub(crate) purpose: Purpose,
    pub(crate) label: &'static str,
    pub(crate) field: Field,
}

/// What is chosen from a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// An agent that continues a session.
    Agent(Place),
    /// The format of an export of a session.
    Format(String),
    /// A command.
    Palette,
    /// A file of a workspace at a moment.
    File(String, Moment),
}

/// A choice from a list, narrowed by what is typed.
#[derive(Debug)]
pub(crate) struct ChooseBox {
    pub(crate) choice: Choice,
    pub(crate) title: String,
    pub(crate) field: Field,
    /// What is chosen, and what is shown for it.
    pub(crate) items: Vec<(String, String)>,
    /// The commands of a palette, one for each item.
    pub(crate) commands: Vec<Command>,
    /// The items that match, by index.
    pub(crate) shown: Vec<usize>,
    pub(crate) cursor: Cursor,
    pub(crate) is_loading: bool,
}

impl ChooseBox {
    pub(crate) fn new(choice: Choice, title: String) -> Self {
        Self {
            choice,
            title,
            field: Field::default(),
            items: Vec::new(),
            commands: Vec::new(),
            shown: Vec::new(),
            cursor: Cursor::default(),
            is_loading: true,
        }
    }

    pub(crate) fn set(&mut self, items: Vec<(String, String)>) {
        self.items = items;
        self.is_loading = false;
        self.narrow();
    }

    /// Shows what matches the typed text.
    pub(crate) fn narrow(&mut self) {
        self.shown = match self.field.text().trim() {
            "" => (0..self.items.len()).collect(),
            typed => {
                let texts = self.items.iter().map(|(name, text)| match name == text {
                    true => name.clone(),
                    false => format!("{name} {text}"),
                });
                fuzzy::matching(typed, &texts.collect::<Vec<_>>())
            }
        };
        self.cursor = Cursor::default();
    }

    /// Says why nothing is listed.
    pub(crate) fn nothing(&self) -> &'static str {
        match self.choice {
            _ if self.is_loading => "reading",
            Choice::Agent(_) if self.items.is_empty() => {
                "no agent that can continue a session is in PATH"
            }
            _ => "nothing matches",
        }
    }

    /// Returns the index of the selected item.
    pub(crate) fn selected(&self) -> Option<usize> {
        self.shown.get(self.cursor.selected).copied()
    }
}

/// What an action would do, and what is to happen with files that have other changes.
#[derive(Debug)]
pub(crate) struct PlanBox {
    pub(crate) action: Action,
    /// `None` until it is worked out.
    pub(crate) plan: Option<Plan>,
    /// The selected choice.
    pub(crate) choice: usize,
    /// The first visible line.
    pub(crate) top: usize,
    pub(crate) is_applying: bool,
}

impl PlanBox {
    /// Returns what happens with files that have other changes.
    pub(crate) fn on_conflict(&self) -> OnConflict {
        let choices = self.plan.as_ref().map(|plan| &plan.choices);
        let chosen = choices.and_then(|choices| choices.get(self.choice));
        chosen.map_or(OnConflict::Stop, |(choice, _)| *choice)
    }
}

/// A file at a moment of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileAt {
    pub(crate) workspace: String,
    pub(crate) moment: Moment,
    pub(crate) path: String,
}

/// A text to read.
#[derive(Debug)]
pub(crate) struct TextBox {
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
    /// The first visible line.
    pub(crate) top: usize,
    /// How many columns are scrolled out on the left.
    pub(crate) skip: usize,
    /// The file that it is, if it is one.
    pub(crate) file: Option<FileAt>,
    pub(crate) is_loading: bool,
}

impl TextBox {
    /// Makes a box whose text is on its way.
    pub(crate) fn loading(title: String, file: Option<FileAt>) -> Self {
        Self {
            title,
            lines: Vec::new(),
            top: 0,
            skip: 0,
            file,
            is_loading: true,
        }
    }

    pub(crate) fn set(&mut self, lines: Vec<Line>) {
        self.lines = lines;
        self.is_loading = false;
    }
}

/// Turns a clean text into lines; a cell cannot hold a tab.
pub(crate) fn plain_lines(text: &str) -> Vec<Line> {
    let line = |line: &str| vec![Span::plain(line.replace('\t', "    "))];
    text.lines().map(line).collect()
}

/// Who wrote each line of a file.
#[derive(Debug)]
pub(crate) struct BlameBox {
    pub(crate) file: FileAt,
    pub(crate) lines: Vec<BlameLine>,
    pub(crate) cursor: Cursor,
    pub(crate) is_loading: bool,
}
