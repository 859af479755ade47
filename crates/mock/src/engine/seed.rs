//! The seed of all randomness of a mock.

use rand::RngExt;

/// The number that repeats a run, and the secret key of the mock.
#[derive(Clone, Copy)]
pub struct Seed {
    number: u64,
    /// The signing key of the mock; `None` if it follows from the number.
    secret: Option<[u8; 32]>,
}

impl Seed {
    /// A random seed: a short number, which repeats the random values, and a key from the system's generator, because
    /// so short a number can be guessed. Signatures and names that use the key differ in every run.
    pub fn random() -> Seed {
        let mut rng = rand::rng();
        Seed { number: rng.random::<u32>().into(), secret: Some(rng.random()) }
    }

    /// The number that `--seed` takes.
    pub fn number(self) -> u64 {
        self.number
    }

    /// The key for signatures and unguessable names.
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
    fn a_seed_from_the_user_is_the_key_and_a_random_seed_reveals_nothing_of_it() {
        assert_eq!(Seed::from(7).key(), Seed::from(7).key());
        assert_ne!(Seed::from(7).key(), Seed::from(8).key());
        let random = Seed::random();
        assert_eq!((random.key(), random.key().len()), (random.key(), 32));
        assert_ne!(random.key(), Seed::from(random.number()).key());
        assert_ne!(random.key(), Seed::random().key());
        assert_eq!(format!("{random:?}"), format!("Seed({})", random.number()), "the key is not shown");
    }
}
