//! Decides which operation fails, and how.

use std::fmt;
use std::io;

/// Which operations a faulty storage counts and can make fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Count {
    /// Operations that change or sync something: create, append, truncate, sync, link,
    /// remove, and locks.
    #[default]
    Writes,
    /// The operations of [`Count::Writes`], and opening, reading, measuring, listing and
    /// existence checks.
    All,
}

/// A fault at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails with this error number and has no effect.
    Error(i32),
    /// The operation and every counted one after it fail without effect.
    ErrorFrom(i32),
    /// An append writes this part of its bytes, and the machine stops; at any other
    /// operation the machine stops before it.
    Tear {
        /// The number of parts that are written.
        numerator: u32,
        /// The number of parts that the bytes are divided into.
        denominator: u32,
    },
    /// The machine stops: the operation and all after it, counted or not, fail with an
    /// error that says "crashed".
    Crash {
        /// Whether the operation still happens.
        when: When,
    },
    /// A sync of a file or a directory does nothing and reports success; any other
    /// operation works as usual.
    LostSync,
}

/// When the machine stops, relative to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before the operation has any effect.
    Before,
    /// After it has its effect, before it can report that.
    After,
}

/// The kinds of operations that faults distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Change,
    Append,
    Sync,
}

/// How much of an operation is performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    numerator: u32,
    denominator: u32,
}

impl Share {
    const ALL: Self = Self {
        numerator: 1,
        denominator: 1,
    };
    const NONE: Self = Self {
        numerator: 0,
        denominator: 1,
    };

    /// Returns this share of a number of bytes.
    pub(super) fn of(self, len: usize) -> usize {
        let share = len as u128 * u128::from(self.numerator) / u128::from(self.denominator.max(1));
        usize::try_from(share).map_or(len, |share| share.min(len))
    }

    /// Returns whether an indivisible operation is performed.
    pub(super) fn is_some(self) -> bool {
        self != Self::NONE
    }
}

/// An operation that is performed.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) share: Share,
    pub(super) then_crash: bool,
}

/// State shared by all clones and handles of a faulty storage.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) count: Count,
    armed: Option<(u64, Fault)>,
    pub(super) operations: u64,
    pub(super) fired: bool,
    pub(super) crashed: bool,
    /// The error of every operation from now on.
    failing: Option<i32>,
    pub(super) log: Vec<String>,
}

impl Control {
    /// Starts counting from 0, towards a fault or none.
    pub(super) fn arm(&mut self, fault: Option<(u64, Fault)>) {
        *self = Self {
            count: self.count,
            armed: fault,
            ..Self::default()
        };
    }

    /// Lets everything work from now on; the counts stay visible.
    pub(super) fn disarm(&mut self) {
        self.armed = None;
        self.failing = None;
        self.crashed = false;
    }

    /// Counts an operation and returns how to perform it, if at all.
    pub(super) fn step(&mut self, kind: Kind, label: fmt::Arguments<'_>) -> io::Result<Step> {
        if self.crashed {
            return Err(self.crash());
        }
        if kind == Kind::Read && self.count == Count::Writes {
            return Ok(Step::whole());
        }
        let fault = self.armed.filter(|(at, _)| *at == self.operations);
        self.operations += 1;
        self.log.push(label.to_string());
        match (fault, self.failing) {
            (Some((_, fault)), _) => self.fire(fault, kind),
            (None, Some(number)) => Err(io::Error::from_raw_os_error(number)),
            (None, None) => Ok(Step::whole()),
        }
    }

    fn fire(&mut self, fault: Fault, kind: Kind) -> io::Result<Step> {
        self.fired = true;
        if let Some(line) = self.log.last_mut() {
            line.push_str(&format!(" <- {fault:?}"));
        }
        match fault {
            Fault::Error(number) => Err(io::Error::from_raw_os_error(number)),
            Fault::ErrorFrom(number) => {
                self.failing = Some(number);
                Err(io::Error::from_raw_os_error(number))
            }
            Fault::Tear {
                numerator,
                denominator,
            } if kind == Kind::Append => Ok(Step {
                share: Share {
                    numerator,
                    denominator,
                },
                then_crash: true,
            }),
            Fault::Tear { .. } | Fault::Crash { when: When::Before } => Err(self.crash()),
            Fault::Crash { when: When::After } => Ok(Step {
                share: Share::ALL,
                then_crash: true,
            }),
            Fault::LostSync if kind == Kind::Sync => Ok(Step {
                share: Share::NONE,
                then_crash: false,
            }),
            Fault::LostSync => Ok(Step::whole()),
        }
    }

    /// Stops the machine and returns the resulting error.
    pub(super) fn crash(&mut self) -> io::Error {
        self.crashed = true;
        let last = self.log.last().map_or("the start", String::as_str);
        io::Error::other(format!("crashed at {last}"))
    }
}

impl Step {
    fn whole() -> Self {
        Self {
            share: Share::ALL,
            then_crash: false,
        }
    }
}
