//! What a model costs, and how much of it may be spent.

use parking_lot::Mutex;

use super::{ModelError, Usage};

/// What a model costs, in US dollars for a million tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Of input that came from the provider's cache; `None` is that of other input.
    pub cache_read: Option<f64>,
    /// Of input that was written to it; `None` is that of other input.
    pub cache_write: Option<f64>,
}

/// The most that all requests of several models may take together.
///
/// Answers that are on their way are not known yet: requests that run at once may exceed it by what they take.
#[derive(Debug, Default)]
pub struct Budget {
    /// In US dollars.
    pub max_cost: Option<f64>,
    /// Input and output.
    pub max_tokens: Option<u64>,
    spent: Mutex<Spending>,
}

/// What providers were asked, and what that took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spending {
    pub requests: u64,
    /// Input and output.
    pub tokens: u64,
    /// In US dollars, as far as prices are known.
    pub cost: f64,
}

impl Price {
    /// What an answer cost, in US dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = *usage;
        let plain = input_tokens.saturating_sub(cache_read_tokens + cache_write_tokens);
        let parts = [
            (plain, self.input),
            (cache_read_tokens, self.cache_read.unwrap_or(self.input)),
            (cache_write_tokens, self.cache_write.unwrap_or(self.input)),
            (output_tokens, self.output),
        ];
        parts.iter().map(|(tokens, price)| *tokens as f64 * price / 1e6).sum()
    }
}

impl Budget {
    pub fn new(max_cost: Option<f64>, max_tokens: Option<u64>) -> Budget {
        Budget { max_cost, max_tokens, spent: Mutex::default() }
    }

    /// Whether one more request may be sent.
    ///
    /// # Errors
    /// [`ModelError::Budget`]: everything is spent.
    pub fn check(&self) -> Result<(), ModelError> {
        let Spending { cost, tokens, .. } = self.spent();
        match (self.max_cost, self.max_tokens) {
            (Some(most), _) if cost >= most => Err(ModelError::Budget { what: format!("${most} are spent") }),
            (_, Some(most)) if tokens >= most => Err(ModelError::Budget { what: format!("{most} tokens are used") }),
            _ => Ok(()),
        }
    }

    /// Adds what an answer took.
    pub fn add(&self, usage: &Usage, price: Option<&Price>) {
        let mut spent = self.spent.lock();
        spent.cost += price.map_or(0.0, |price| price.cost(usage));
        spent.tokens += usage.total();
        spent.requests += 1;
    }

    /// What was spent so far.
    pub fn spent(&self) -> Spending {
        *self.spent.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 200_000,
            cache_read_tokens: 500_000,
            cache_write_tokens: 0,
        };
        let price = Price { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: None };
        assert!((price.cost(&usage) - (1.5 + 0.15 + 3.0)).abs() < 1e-9);
        let same = Price { cache_read: None, ..price };
        assert!((same.cost(&usage) - 6.0).abs() < 1e-9);
    }

    #[test]
    fn a_budget_ends_when_it_is_spent() {
        let usage = Usage { input_tokens: 900, output_tokens: 100, ..Usage::default() };
        let price = Price { input: 1000.0, output: 1000.0, cache_read: None, cache_write: None };
        let money = Budget::new(Some(1.5), None);
        money.add(&usage, Some(&price));
        money.check().expect("a dollar is spent");
        money.add(&usage, Some(&price));
        assert_eq!(money.check().expect_err("two").to_string(), "the budget is used up: $1.5 are spent");
        let tokens = Budget::new(None, Some(1000));
        tokens.add(&usage, None);
        assert_eq!(tokens.check().expect_err("all").to_string(), "the budget is used up: 1000 tokens are used");
    }
}
