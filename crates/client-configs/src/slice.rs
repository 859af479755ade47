//! Slices of what is read, which are kept until the program ends.

use serde::{Deserialize, Deserializer};

pub(crate) fn slice<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<&'static [T], D::Error> {
    Vec::deserialize(from).map(|items| &*items.leak())
}
