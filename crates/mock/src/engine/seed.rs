//! What decides everything that is random about a mock.

use rand::RngExt;

/// The number that repeats a run, and the secret key of the mock.
#[derive(Clone, Copy)]
pub struct Seed {
    number: u64,
    /// The key of the mock's seal; none if it follows from the number.
    secret: Option<[u8; 32]>,
}

impl Seed {
    /// A seed that was not given: a short number, which repeats what is drawn, and a key of the system's generator, for
    /// a number that short is found by trying. What is signed and named with the key is another the next time.
    pub fn random() -> Seed {
        let mut rng = rand::rng();
        Seed { number: rng.random::<u32>().into(), secret: Some(rng.random()) }
    }

    /// The number that `--seed` takes.
    pub fn number(self) -> u64 {
        self.number
    }

    /// The key of everything that must not be forged or guessed.
    pub(super) fn key(&self) -> Vec<u8> {
        self.secret.map_or_else(|| self.number.to_le_bytes().to_vec(), Vec::from)
    }
}

/// The key follows from the number, so that the whole run is repeated.
impl From<u64> for Seed {
    fn from(number: u64) -> Seed {
        Seed { number, secret: None }
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seed({})", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_given_is_the_key_and_one_that_was_not_says_nothing_of_it() {
        assert_eq!(Seed::from(7).key(), Seed::from(7).key());
        assert_ne!(Seed::from(7).key(), Seed::from(8).key());
        let random = Seed::random();
        assert_eq!((random.key(), random.key().len()), (random.key(), 32));
        assert_ne!(random.key(), Seed::from(random.number()).key());
        assert_ne!(random.key(), Seed::random().key());
        assert_eq!(format!("{random:?}"), format!("Seed({})", random.number()), "the key is not shown");
    }
}
