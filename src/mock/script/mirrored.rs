//! placeholder
use crate::config::{Node, Problems};
#[derive(Debug, Default)]
pub struct Mirrored;
impl Mirrored {
    pub(super) fn read(_: &Node) -> Result<Mirrored, Problems> {
        Ok(Mirrored)
    }
}
