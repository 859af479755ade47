//! What comes out of a conversion: of single files, and of any servers between any two programs.

mod examples;
mod round_trip;
