//! Random numbers that follow from a seed, the same in every release of this project and its dependencies.

/// The generator SplitMix64 of Steele, Lea and Flood (*Fast Splittable Pseudorandom Number Generators*, 2014).
#[derive(Debug)]
pub struct SeededRng(u64);

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl SeededRng {
    pub fn new(seed: u64) -> SeededRng {
        SeededRng(seed)
    }

    /// A generator for each combination of `parts`, independent of the others.
    pub fn for_parts(seed: u64, parts: impl IntoIterator<Item = u64>) -> SeededRng {
        SeededRng(parts.into_iter().fold(SeededRng(seed).number(), |state, part| SeededRng(state ^ part).number()))
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below 1.
    pub fn fraction(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From `low` to `high`, which is not less; all of them nearly as likely.
    pub fn number_in(&mut self, low: i64, high: i64) -> i64 {
        low.wrapping_add_unsigned(self.number_up_to(high.wrapping_sub(low).cast_unsigned()))
    }

    /// From 0 to `high`, which may come; all of them nearly as likely.
    pub fn number_up_to(&mut self, high: u64) -> u64 {
        let count = u128::from(high) + 1;
        u64::try_from((u128::from(self.number()) * count) >> 64).unwrap_or(high)
    }

    pub fn byte(&mut self) -> u8 {
        self.number().to_be_bytes()[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut draws = SeededRng::new(1_234_567);
        let numbers = std::array::from_fn(|_| draws.number());
        let reference = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, reference);
        // The same seed must give the same values in every release.
        assert_eq!(SeededRng::for_parts(7, [1, 2, 3]).number(), 12_340_369_889_520_510_911);
        assert_eq!(SeededRng::new(7).byte(), 0x63);
    }

    #[test]
    fn draws_stay_within_their_bounds_and_reach_them() {
        let mut draws = SeededRng::new(1);
        let dice: std::collections::BTreeSet<_> = (0..200).map(|_| draws.number_in(-1, 4)).collect();
        assert_eq!(dice.into_iter().collect::<Vec<_>>(), [-1, 0, 1, 2, 3, 4]);
        assert_eq!((draws.number_in(5, 5), draws.number_up_to(0)), (5, 0));
        let wide: Vec<_> = (0..100).map(|_| draws.number_in(i64::MIN, i64::MAX)).collect();
        assert!(wide.iter().any(|it| *it < 0) && wide.iter().any(|it| *it > 0));
        let fractions: Vec<_> = (0..1000).map(|_| draws.fraction()).collect();
        assert!(fractions.iter().all(|it| (0.0..1.0).contains(it)));
        assert!((0.45..0.55).contains(&(fractions.iter().sum::<f64>() / 1000.0)));
    }

    #[test]
    fn every_part_and_its_place_matters() {
        let parts: [&[u64]; 6] = [&[], &[0], &[0, 0], &[1, 0], &[0, 1], &[1]];
        let numbers = parts.map(|parts| SeededRng::for_parts(1, parts.iter().copied()).number());
        assert_eq!(numbers.iter().collect::<std::collections::HashSet<_>>().len(), parts.len());
    }
}
