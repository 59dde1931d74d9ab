//! What is said comes back as it was said (A2-A5, A14, F8, F9).

mod drafts;
mod large;
mod values;
