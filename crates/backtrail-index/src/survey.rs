//! Which trails there are, and how long they are.
