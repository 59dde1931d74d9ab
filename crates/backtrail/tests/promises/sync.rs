//! What is pushed can be pulled, byte for byte, whatever is interrupted, and nothing is merged or
//! lost on the way.

mod damage;
mod diverged;
mod exact;
mod gone;
mod interrupted;
mod kit;
mod random;
