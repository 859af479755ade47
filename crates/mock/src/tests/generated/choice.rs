//! How generated values are drawn from bytes: those of proptest or those of a fuzzer.

use arbitrary::{Arbitrary, Result, Unstructured};

/// A list of `MIN` to `MAX` items. (That of `Vec` has one item on average.)
#[derive(Debug, Clone)]
pub(crate) struct Few<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<'a, T: Arbitrary<'a>, const MIN: usize, const MAX: usize> Arbitrary<'a> for Few<T, MIN, MAX> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let length = u.int_in_range(MIN..=MAX)?;
        (0..length).map(|_| T::arbitrary(u)).collect::<Result<_>>().map(Few)
    }
}

impl<T, const MIN: usize, const MAX: usize> std::ops::Deref for Few<T, MIN, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// The usual value, and anything once in eight times.
pub(crate) fn mostly_usual<'a, T: Arbitrary<'a> + Default>(u: &mut Unstructured<'a>) -> Result<T> {
    if u.ratio(7, 8)? { Ok(T::default()) } else { T::arbitrary(u) }
}

/// Chooses one of several by a number that may be larger than there are.
pub(crate) fn pick<T>(items: &[T], which: u8) -> Option<&T> {
    items.get(usize::from(which) % items.len().max(1))
}
