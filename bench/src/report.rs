//! The report: figures with their baselines and targets.

use std::fmt;

use serde_json::{Value, json};

use crate::machine::Machine;
use crate::measure::Samples;

/// All results of a run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) entries: Vec<Entry>,
}

/// One line of the table.
#[derive(Debug)]
pub(crate) enum Entry {
    Figure(Figure),
    /// It cannot be measured here.
    Skipped {
        name: String,
        why: String,
    },
    /// It could be measured, but failed.
    Failed {
        name: String,
        why: String,
    },
}

/// A measurement with its baseline and its target.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) ours: Quantity,
    pub(crate) baseline: Option<(&'static str, Quantity)>,
    pub(crate) goal: Goal,
}

/// The target of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// At most this many times the baseline's time.
    CostAtMost(f64),
    /// At least this many times as fast as the baseline.
    SpeedAtLeast(f64),
    AtMost(f64),
    AtLeast(f64),
    /// No target.
    Open,
}

/// A measured quantity.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    value: f64,
    unit: Unit,
    samples: Option<Samples>,
    /// Whether the value is the least of the samples instead of the median.
    best: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    PerSecond,
    BytesPerSecond,
    Bytes,
    Count,
    /// A part of something, shown in percent.
    Share,
}

impl Quantity {
    /// Creates a quantity from the median of samples.
    pub(crate) fn of(samples: &Samples, unit: Unit) -> Self {
        Self {
            value: samples.median(),
            unit,
            samples: Some(samples.clone()),
            best: false,
        }
    }

    /// Creates a quantity from the least of samples.
    pub(crate) fn best(samples: &Samples, unit: Unit) -> Self {
        Self {
            value: samples.least(),
            best: true,
            ..Self::of(samples, unit)
        }
    }

    /// Creates a quantity from one value.
    pub(crate) fn single(value: f64, unit: Unit) -> Self {
        Self {
            value,
            unit,
            samples: None,
            best: false,
        }
    }

    fn to_json(&self) -> Value {
        let mut json = json!({ "value": self.value, "unit": self.unit.name() });
        if let Some(samples) = &self.samples {
            json["samples"] = json!({
                "count": samples.len(),
                "least": samples.least(),
                "p25": samples.percentile(25.0),
                "median": samples.median(),
                "p75": samples.percentile(75.0),
                "p99": samples.percentile(99.0),
                "greatest": samples.greatest(),
                "mean": samples.mean(),
            });
        }
        json
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::PerSecond => "1/s",
            Self::BytesPerSecond => "B/s",
            Self::Bytes => "B",
            Self::Count | Self::Share => "1",
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 1e-3 => format!("{:.2} µs", value * 1e6),
            Self::Seconds => format!("{:.2} ms", value * 1e3),
            Self::PerSecond => format!("{value:.0} /s"),
            Self::BytesPerSecond => format!("{:.0} MB/s", value / 1e6),
            Self::Bytes => format!("{:.1} MiB", value / f64::from(1 << 20)),
            Self::Count => format!("{value:.0}"),
            Self::Share => format!("{:.2} %", value * 100.0),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.unit.show(self.value);
        match &self.samples {
            Some(samples) if self.best => write!(f, "{shown} best of {}", samples.len()),
            Some(samples) if samples.len() > 1 => {
                write!(f, "{shown} ±{:.0}%", samples.spread() * 100.0)
            }
            _ => f.write_str(&shown),
        }
    }
}

impl Figure {
    /// Returns the ratio to the baseline: the cost, or the speed if the target is a
    /// speed.
    fn ratio(&self) -> Option<f64> {
        let (_, baseline) = self.baseline.as_ref()?;
        let ratio = self.ours.value / baseline.value;
        if ratio.is_nan() {
            return None;
        }
        let is_cost = matches!(self.ours.unit, Unit::Seconds | Unit::Bytes | Unit::Count);
        Some(match self.goal {
            Goal::SpeedAtLeast(_) if is_cost => ratio.recip(),
            Goal::CostAtMost(_) if !is_cost => ratio.recip(),
            _ => ratio,
        })
    }

    /// Returns whether the target is met; `None` if there is none.
    fn is_met(&self) -> Option<bool> {
        let ratio = self.ratio().unwrap_or(f64::NAN);
        match self.goal {
            Goal::CostAtMost(most) => Some(ratio <= most),
            Goal::SpeedAtLeast(least) => Some(ratio >= least),
            Goal::AtMost(most) => Some(self.ours.value <= most),
            Goal::AtLeast(least) => Some(self.ours.value >= least),
            Goal::Open => None,
        }
    }

    fn verdict(&self) -> &'static str {
        match self.is_met() {
            Some(true) => "PASS",
            Some(false) => "MISS",
            None => "-",
        }
    }

    fn target(&self) -> String {
        let unit = self.ours.unit;
        match self.goal {
            Goal::CostAtMost(most) => format!("cost ≤ {most}x"),
            Goal::SpeedAtLeast(least) => format!("speed ≥ {least}x"),
            Goal::AtMost(most) => format!("≤ {}", unit.show(most)),
            Goal::AtLeast(least) => format!("≥ {}", unit.show(least)),
            Goal::Open => "-".to_owned(),
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "ours": self.ours.to_json(),
            "baseline": self.baseline.as_ref().map(|(what, quantity)| {
                let mut json = quantity.to_json();
                json["what"] = (*what).into();
                json
            }),
            "ratio": self.ratio(),
            "target": self.target(),
            "verdict": self.verdict(),
        })
    }

    fn cells(&self) -> [String; COLUMNS] {
        let dash = || "-".to_owned();
        [
            self.name.clone(),
            self.ours.to_string(),
            self.baseline
                .as_ref()
                .map_or_else(dash, |(what, quantity)| format!("{quantity} {what}")),
            self.ratio()
                .map_or_else(dash, |ratio| format!("{ratio:.2}x")),
            self.target(),
            self.verdict().to_owned(),
        ]
    }
}

impl Entry {
    /// Prints at once that something is not measured, and keeps it for the report.
    pub(crate) fn skipped(name: &str, why: &str) -> Self {
        eprintln!("SKIPPED: {name}: {why}");
        Self::Skipped {
            name: name.to_owned(),
            why: why.to_owned(),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Figure(figure) => figure.to_json(),
            Self::Skipped { name, why } => json!({"name": name, "verdict": "SKIPPED", "why": why}),
            Self::Failed { name, why } => json!({"name": name, "verdict": "FAILED", "why": why}),
        }
    }

    fn cells(&self) -> [String; COLUMNS] {
        let (name, verdict) = match self {
            Self::Figure(figure) => return figure.cells(),
            Self::Skipped { name, .. } => (name, "SKIPPED"),
            Self::Failed { name, .. } => (name, "FAILED"),
        };
        let dash = || "-".to_owned();
        [
            name.clone(),
            dash(),
            dash(),
            dash(),
            dash(),
            verdict.to_owned(),
        ]
    }
}

const COLUMNS: usize = 6;

impl Report {
    pub(crate) fn to_json(&self) -> Value {
        let figures: Vec<Value> = self.entries.iter().map(Entry::to_json).collect();
        json!({ "machine": self.machine.to_json(), "figures": figures })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        let head = ["figure", "ours", "baseline", "ratio", "target", ""].map(str::to_owned);
        let mut rows = vec![head];
        rows.extend(self.entries.iter().map(Entry::cells));
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        });
        for row in &rows {
            let cells = row.iter().zip(widths);
            let line: String = cells
                .map(|(cell, width)| format!("{cell:width$}  "))
                .collect();
            writeln!(f, "{}", line.trim_end())?;
        }
        for entry in &self.entries {
            if let Entry::Skipped { name, why } | Entry::Failed { name, why } = entry {
                writeln!(f, "\n{name}: {why}")?;
            }
        }
        writeln!(
            f,
            "\nMedians of rounds that alternate, or the best; ± is half the quartiles' distance."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(ours: f64, baseline: f64, unit: Unit, goal: Goal) -> Figure {
        Figure {
            name: "a figure".to_owned(),
            ours: Quantity::single(ours, unit),
            baseline: Some(("the other", Quantity::single(baseline, unit))),
            goal,
        }
    }

    #[test]
    fn cost_and_speed_look_the_right_way_for_times_and_rates() {
        let met = |ours, baseline, unit, goal| figure(ours, baseline, unit, goal).is_met();
        let [twice, half] = [(2.0, 1.0), (1.0, 2.0)];
        let cost = Goal::CostAtMost(1.5);
        assert_eq!(met(twice.0, twice.1, Unit::Seconds, cost), Some(false));
        assert_eq!(met(half.0, half.1, Unit::Seconds, cost), Some(true));
        assert_eq!(met(twice.0, twice.1, Unit::PerSecond, cost), Some(true));
        assert_eq!(met(half.0, half.1, Unit::PerSecond, cost), Some(false));
        assert_eq!(met(twice.0, twice.1, Unit::Bytes, cost), Some(false));
        assert_eq!(met(half.0, half.1, Unit::Bytes, cost), Some(true));
        let speed = Goal::SpeedAtLeast(1.5);
        assert_eq!(met(twice.0, twice.1, Unit::Seconds, speed), Some(false));
        assert_eq!(met(half.0, half.1, Unit::Seconds, speed), Some(true));
        assert_eq!(met(twice.0, twice.1, Unit::PerSecond, speed), Some(true));
        assert_eq!(met(half.0, half.1, Unit::PerSecond, speed), Some(false));
    }

    #[test]
    fn what_could_not_be_measured_meets_no_target() {
        let figure = figure(f64::NAN, 1.0, Unit::Seconds, Goal::AtMost(1.0));
        assert_eq!(figure.verdict(), "MISS");
    }
}
