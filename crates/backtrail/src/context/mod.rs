//! stub
use crate::message::Message;
use crate::trail::DamageReport;
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Neutral,
}
#[derive(Debug)]
pub struct Context {
    json: String,
}
impl Context {
    pub fn as_json(&self) -> &str {
        &self.json
    }
    pub(crate) fn set_skipped(&mut self, _d: DamageReport, _u: u64) {}
}
#[derive(Debug, Default)]
pub(crate) struct ContextInput {
    pub(crate) instructions: Vec<Said>,
    pub(crate) summary: Option<String>,
    pub(crate) messages: Vec<Said>,
}
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) seq: u64,
    pub(crate) model: Option<String>,
    pub(crate) message: Message,
}
pub(crate) fn render(_shape: Shape, input: &ContextInput) -> Context {
    let mut t = String::new();
    for s in &input.instructions {
        t += &format!("[{}]", s.message.text());
    }
    if let Some(s) = &input.summary {
        t += &format!("({s})");
    }
    for s in &input.messages {
        t += &format!("{} ", s.message.text());
        let _ = &s.model;
    }
    Context { json: t }
}
