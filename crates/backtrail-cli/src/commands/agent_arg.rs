//! The name of an agent on the command line: any that people use for it.

use std::ffi::OsStr;

use backtrail_formats::agent_called;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Reads the name of an agent as the one of its sessions. Other values are read as they are; of a
/// misspelt one, the error names the most similar.
#[derive(Debug, Clone)]
pub(super) struct AgentArg {
    values: PossibleValuesParser,
}

impl AgentArg {
    /// Takes the values that help and errors show.
    pub(super) fn new(values: impl IntoIterator<Item = &'static str>) -> Self {
        let values = PossibleValuesParser::new(values);
        Self { values }
    }

    /// Returns the value that is shown for an agent.
    fn shown(&self, name: &str) -> Option<String> {
        let mut values = self.values.possible_values()?;
        let is_it = |value: &PossibleValue| {
            let agent = agent_called(value.get_name());
            agent.is_some_and(|agent| agent.name() == name)
        };
        Some(values.find(is_it)?.get_name().to_owned())
    }
}

impl TypedValueParser for AgentArg {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let agent = value.to_str().and_then(agent_called);
        if let Some(agent) = agent.filter(|agent| self.shown(agent.name()).is_some()) {
            return Ok(agent.name().to_owned());
        }
        self.values.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.values.possible_values()
    }
}
