//! Applies ignore rules to names.
//!
//! Each directory with rules of its own adds a layer. A layer's key identifies all rules
//! up to there: decisions made under the same key still hold.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fd::OwnedFd;

use super::git;
use super::matcher::Matcher;
use super::sys;

/// Longer rule files are not read.
pub(super) const LONGEST: u64 = 1024 * 1024;

/// What the rules decide about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Verdict {
    /// No rule matches.
    #[default]
    Plain,
    /// Git's rules or `.ignore` match it.
    Ignored,
    /// `.backtrailignore` matches it: it is never captured.
    Excluded,
    /// Git's rules or `.ignore` match a directory that contains it.
    Inside,
    /// Ignored in either way, but captured because it was before. This is not a rule's
    /// decision and is not cached.
    Kept,
    /// Ignored, but the user asked to include it. This is not a rule's decision either.
    Included,
}

impl Verdict {
    /// Returns the verdict to cache: what the rules alone decide.
    pub(super) fn by_rules(self) -> Self {
        match self {
            Self::Kept | Self::Included => Self::Ignored,
            verdict => verdict,
        }
    }

    /// Returns the verdict for something that the user asked to include.
    pub(super) fn include(self) -> Self {
        match self {
            Self::Ignored | Self::Inside | Self::Kept => Self::Included,
            verdict => verdict,
        }
    }

    /// Returns whether rules ignore it, and nobody asked to include it.
    pub(super) fn is_ignored(self) -> bool {
        !matches!(self, Self::Plain | Self::Included)
    }

    /// Returns the verdict for something that was captured before.
    pub(super) fn keep(self) -> Self {
        match self {
            Self::Ignored | Self::Inside => Self::Kept,
            verdict => verdict,
        }
    }
}

/// Where rules come from, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Backtrail,
    Ignore,
    Git,
    Exclude,
    Global,
}

impl Origin {
    const ALL: [Self; 5] = [
        Self::Backtrail,
        Self::Ignore,
        Self::Git,
        Self::Exclude,
        Self::Global,
    ];

    /// Returns whether these rules do not apply inside a nested repository.
    fn ends_at_repository(self) -> bool {
        matches!(self, Self::Git | Self::Exclude | Self::Global)
    }
}

/// Which special names a directory has, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RuleFiles(u8);

const FILES: [(&CStr, Origin); 3] = [
    (c".backtrailignore", Origin::Backtrail),
    (c".ignore", Origin::Ignore),
    (c".gitignore", Origin::Git),
];

impl RuleFiles {
    const GIT: u8 = 1 << FILES.len();
    const ALL: u8 = Self::GIT * 2 - 1;

    pub(super) fn from_bits(bits: u8) -> Option<Self> {
        (bits <= Self::ALL).then_some(Self(bits))
    }

    pub(super) fn bits(self) -> u8 {
        self.0
    }

    pub(super) fn note(&mut self, name: &CStr) {
        if name.to_bytes().first() != Some(&b'.') {
            return;
        }
        if name == c".git" {
            self.0 |= Self::GIT;
        }
        for (n, (file, _)) in FILES.iter().enumerate() {
            if *file == name {
                self.0 |= 1 << n;
            }
        }
    }

    fn has(self, n: usize) -> bool {
        self.0 & (1 << n) != 0
    }

    fn has_git(self) -> bool {
        self.0 & Self::GIT != 0
    }
}

/// One file of rules.
#[derive(Debug)]
struct RuleFile {
    origin: Origin,
    text: Vec<u8>,
    /// Compiled when it is first needed.
    matcher: OnceLock<Matcher>,
}

impl RuleFile {
    fn new(origin: Origin, text: Vec<u8>) -> Arc<Self> {
        let matcher = OnceLock::new();
        Arc::new(Self {
            origin,
            text,
            matcher,
        })
    }

    /// Returns whether the rules ignore a path (true), include it again (false), or do
    /// not match.
    fn decide(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        let matcher = self.matcher.get_or_init(|| Matcher::new(&self.text));
        matcher.decide(path, is_dir)
    }
}

/// Identifies a set of rules.
pub(super) type RulesKey = [u8; 16];

/// The rules for the contents of one directory: its own, and all above.
#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Self>>,
    key: RulesKey,
    /// The length of the path that leads to this layer's directory.
    base: usize,
    is_repository: bool,
    around: Around,
    sources: Vec<Arc<RuleFile>>,
    frame: Arc<SharedRules>,
}

/// The directory that rules apply in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    Plain,
    /// It is ignored.
    Ignored,
    /// It is included, whatever is ignored: only `.backtrailignore` counts.
    Included,
}

/// State shared by all layers.
#[derive(Debug)]
struct SharedRules {
    root: PathBuf,
    /// The root's path beneath its repository, with a trailing `/` unless empty.
    prefix: Vec<u8>,
    global: Option<Arc<RuleFile>>,
}

impl Rules {
    /// Creates the rules around the root: the global ones, and those of the directories
    /// above, up to the repository's. `settings` is anything else the decisions depend
    /// on.
    pub(super) fn around(
        root: &Path,
        global_excludes: Option<&Path>,
        settings: &[u8],
    ) -> io::Result<Arc<Self>> {
        let global = match global_excludes {
            Some(path) => {
                sys::read_path(path, LONGEST)?.map(|text| RuleFile::new(Origin::Global, text))
            }
            None => None,
        };
        let above = git::directories_above(root);
        let prefix = above.first().map_or_else(Vec::new, |top| {
            let below = root.strip_prefix(top).unwrap_or(Path::new(""));
            [below.as_os_str().as_bytes(), b"/"].concat()
        });
        let settings = [settings, &prefix].concat();
        let frame = Arc::new(SharedRules {
            root: root.to_owned(),
            prefix,
            global: global.clone(),
        });
        let mut rules = Arc::new(Self {
            above: None,
            key: key(&[0; 16], false, &settings, &global),
            base: frame.prefix.len(),
            is_repository: false,
            around: Around::Plain,
            sources: global.into_iter().collect(),
            frame,
        });
        for (n, dir) in above.iter().enumerate() {
            rules = rules.of_ancestor(dir, &above[0], n == 0)?;
        }
        Ok(rules)
    }

    /// Adds the layer of a directory above the root.
    fn of_ancestor(
        self: &Arc<Self>,
        dir: &Path,
        top: &Path,
        is_top: bool,
    ) -> io::Result<Arc<Self>> {
        let below = dir.strip_prefix(top).unwrap_or(Path::new(""));
        let base = match below.as_os_str().len() {
            0 => 0,
            len => len + 1,
        };
        let mut sources = Vec::new();
        for (name, origin) in FILES {
            let path = dir.join(OsStr::from_bytes(name.to_bytes()));
            if let Some(text) = sys::read_path(&path, LONGEST)? {
                sources.push(RuleFile::new(origin, text));
            }
        }
        if is_top && let Some(text) = git::exclude_of_path(dir)? {
            sources.push(RuleFile::new(Origin::Exclude, text));
        }
        Ok(self.with(base, is_top, sources))
    }

    /// Adds the layer of a directory, if it has rules of its own.
    pub(super) fn of_dir(
        self: &Arc<Self>,
        dir: &OwnedFd,
        path: &[u8],
        files: RuleFiles,
    ) -> io::Result<Arc<Self>> {
        if files == RuleFiles::default() {
            return Ok(self.clone());
        }
        let mut sources = Vec::new();
        for (n, (name, origin)) in FILES.iter().enumerate() {
            if files.has(n)
                && let Some(text) = sys::read_beneath(dir, name, LONGEST)?
            {
                sources.push(RuleFile::new(*origin, text));
            }
        }
        if files.has_git() {
            let whole = || self.frame.root.join(OsStr::from_bytes(path));
            if let Some(text) = git::exclude_of(dir, whole)? {
                sources.push(RuleFile::new(Origin::Exclude, text));
            }
        }
        let base = self.frame.prefix.len() + path.len() + usize::from(!path.is_empty());
        Ok(self.with(base, files.has_git(), sources))
    }

    fn with(
        self: &Arc<Self>,
        base: usize,
        is_repository: bool,
        mut sources: Vec<Arc<RuleFile>>,
    ) -> Arc<Self> {
        if sources.is_empty() && !is_repository {
            return self.clone();
        }
        // The same text means something else in another directory. The cache is keyed by
        // path, so the depth of the layer identifies the directory.
        let place = (base as u64).to_le_bytes();
        let key = key(&self.key, is_repository, &place, &sources);
        if is_repository {
            sources.extend(self.frame.global.clone());
        }
        Arc::new(Self {
            above: Some(self.clone()),
            key,
            base,
            is_repository,
            around: self.around,
            sources,
            frame: self.frame.clone(),
        })
    }

    /// Returns the rules for the contents of an ignored directory.
    pub(super) fn inside(self: &Arc<Self>) -> Arc<Self> {
        self.in_dir(Around::Ignored, b"inside")
    }

    /// Returns the rules for the contents of a directory that the user asked to include.
    pub(super) fn included(self: &Arc<Self>) -> Arc<Self> {
        self.in_dir(Around::Included, b"included")
    }

    fn in_dir(self: &Arc<Self>, around: Around, name: &[u8]) -> Arc<Self> {
        if self.around == around {
            return self.clone();
        }
        Arc::new(Self {
            above: Some(self.clone()),
            key: key(&self.key, false, name, []),
            base: self.base,
            is_repository: false,
            around,
            sources: Vec::new(),
            frame: self.frame.clone(),
        })
    }

    pub(super) fn key(&self) -> &RulesKey {
        &self.key
    }

    /// Decides about a path beneath the root.
    pub(super) fn verdict(&self, dir: &[u8], name: &[u8], is_dir: bool) -> Verdict {
        if self.above.is_none() && self.sources.is_empty() {
            return Verdict::Plain;
        }
        let mut path = self.frame.prefix.clone();
        path.extend_from_slice(dir);
        if !dir.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        if self.around != Around::Plain {
            return match (self.decide(Origin::Backtrail, &path, is_dir), self.around) {
                (Some(true), _) => Verdict::Excluded,
                (_, Around::Ignored) => Verdict::Inside,
                _ => Verdict::Plain,
            };
        }
        for origin in Origin::ALL {
            match self.decide(origin, &path, is_dir) {
                Some(true) if origin == Origin::Backtrail => return Verdict::Excluded,
                Some(true) => return Verdict::Ignored,
                Some(false) => return Verdict::Plain,
                None => {}
            }
        }
        Verdict::Plain
    }

    /// Applies the rules of one origin, the nearest first.
    fn decide(&self, origin: Origin, path: &[u8], is_dir: bool) -> Option<bool> {
        let mut layer = Some(self);
        while let Some(rules) = layer {
            let below = path.get(rules.base..).unwrap_or_default();
            let mut own = rules
                .sources
                .iter()
                .filter(|source| source.origin == origin);
            if let Some(said) = own.find_map(|source| source.decide(below, is_dir)) {
                return Some(said);
            }
            if rules.is_repository && origin.ends_at_repository() {
                return None;
            }
            layer = rules.above.as_deref();
        }
        None
    }
}

fn key<'a>(
    above: &RulesKey,
    is_repository: bool,
    settings: &[u8],
    sources: impl IntoIterator<Item = &'a Arc<RuleFile>>,
) -> RulesKey {
    let mut hasher = blake3::Hasher::new();
    hasher.update(above);
    hasher.update(&[u8::from(is_repository)]);
    hasher.update(&(settings.len() as u64).to_le_bytes());
    hasher.update(settings);
    for source in sources {
        hasher.update(&[source.origin as u8]);
        hasher.update(&(source.text.len() as u64).to_le_bytes());
        hasher.update(&source.text);
    }
    let mut key = RulesKey::default();
    hasher.finalize_xof().fill(&mut key);
    key
}
