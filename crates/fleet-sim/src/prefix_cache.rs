//! An engine's prefix cache: blocks of positions, each with what attention sees after it and with the
//! weights that computed it. Nothing here knows which weights are current: staleness is the user's to see.

use std::collections::{HashMap, VecDeque};

use crate::language::{Context, mix, mix_bytes};

/// A block: the context after it, and the weights behind that context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    context: Context,
    /// The weights that computed it, or the stale ones that a position before it was computed by.
    weights: u64,
}

/// The key of a block: the salt and every token up to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(u64);

impl Key {
    fn of_salt(salt: &str) -> Self {
        Self(mix_bytes(0x7361_6c74, salt.as_bytes()))
    }

    fn then(self, tokens: &[u32]) -> Self {
        Self(tokens.iter().fold(self.0, |key, &token| mix(key, u64::from(token))))
    }
}

/// Positions of one request, computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Computed {
    pub(crate) context: Context,
    /// The key of the last full block.
    pub(crate) key: Key,
    /// Positions that came from the cache.
    pub(crate) cached: usize,
    /// Other weights than the current ones, behind some of those positions.
    pub(crate) stale: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct PrefixCache {
    blocks: HashMap<Key, Block>,
    order: VecDeque<Key>,
    block_size: usize,
    capacity: usize,
}

impl PrefixCache {
    pub(crate) fn new(block_size: usize, capacity: usize) -> Self {
        Self { blocks: HashMap::new(), order: VecDeque::new(), block_size, capacity }
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.order.clear();
    }

    /// Computes the positions of `tokens` with `weights`, from the longest cached prefix on. The last
    /// position is always computed: its output is needed.
    pub(crate) fn compute(&mut self, salt: &str, tokens: &[u32], weights: u64) -> Computed {
        let reusable = tokens.len().saturating_sub(1) / self.block_size;
        let mut done = Computed { context: Context::EMPTY, key: Key::of_salt(salt), cached: 0, stale: None };
        let blocks = tokens.chunks_exact(self.block_size);
        let rest = blocks.remainder();
        let mut hit = true;
        for (index, tokens) in blocks.enumerate() {
            done.key = done.key.then(tokens);
            let block = self.blocks.get(&done.key).copied().filter(|_| hit && index < reusable);
            hit = block.is_some();
            if let Some(block) = block {
                done.context = block.context;
                done.cached += tokens.len();
                if block.weights != weights {
                    done.stale = Some(block.weights);
                }
            } else {
                done.context = tokens.iter().fold(done.context, |context, &t| context.then(t, weights));
                self.insert(done.key, done.context, done.stale.unwrap_or(weights));
            }
        }
        done.context = rest.iter().fold(done.context, |context, &t| context.then(t, weights));
        done
    }

    /// One generated position more. `tokens` are all of the request, the new one last.
    pub(crate) fn extend(&mut self, done: &mut Computed, tokens: &[u32], weights: u64) {
        let Some(&last) = tokens.last() else { return };
        done.context = done.context.then(last, weights);
        if tokens.len().is_multiple_of(self.block_size) {
            done.key = done.key.then(&tokens[tokens.len() - self.block_size..]);
            self.insert(done.key, done.context, done.stale.unwrap_or(weights));
        }
    }

    /// A block that is there already stays: the first one is the one that is found.
    fn insert(&mut self, key: Key, context: Context, weights: u64) {
        if self.capacity == 0 || self.blocks.contains_key(&key) {
            return;
        }
        if self.blocks.len() == self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.blocks.remove(&oldest);
        }
        self.blocks.insert(key, Block { context, weights });
        self.order.push_back(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: [u32; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

    #[test]
    fn the_second_request_reuses_whole_blocks_and_sees_the_same() {
        let mut cache = PrefixCache::new(4, 100);
        let first = cache.compute("", &PROMPT, 7);
        let second = cache.compute("", &PROMPT, 7);
        assert_eq!((first.cached, second.cached), (0, 8));
        assert_eq!((first.context, second.context), (second.context, first.context));
        // The last position is computed, even where its block is cached.
        assert_eq!(cache.compute("", &PROMPT[..8], 7).cached, 4);
    }

    #[test]
    fn blocks_of_other_weights_contaminate_and_a_salt_keeps_them_out() {
        let mut cache = PrefixCache::new(4, 100);
        cache.compute("", &PROMPT, 7);
        let pure = PrefixCache::new(4, 100).compute("", &PROMPT, 8);
        let stale = cache.compute("", &PROMPT, 8);
        assert_eq!(stale.stale, Some(7));
        assert_ne!(stale.context, pure.context);
        let salted = cache.compute("opening-2", &PROMPT, 8);
        assert_eq!((salted.stale, salted.cached, salted.context), (None, 0, pure.context));
    }

    #[test]
    fn a_block_behind_a_stale_one_stays_stale() {
        let mut cache = PrefixCache::new(4, 100);
        cache.compute("", &PROMPT[..4], 7);
        assert_eq!(cache.compute("", &PROMPT, 8).stale, Some(7));
        // Both blocks now come from the cache; the second was computed by 8, on top of 7.
        let again = cache.compute("", &PROMPT, 8);
        assert_eq!((again.cached, again.stale), (8, Some(7)));
    }

    #[test]
    fn generated_positions_are_cached_too() {
        let mut cache = PrefixCache::new(4, 100);
        let mut tokens = PROMPT[..3].to_vec();
        let mut done = cache.compute("", &tokens, 7);
        for token in [4, 5, 6, 7, 8] {
            tokens.push(token);
            cache.extend(&mut done, &tokens, 7);
        }
        assert_eq!(cache.compute("", &PROMPT, 7).cached, 8);
        assert_eq!(done.context, PrefixCache::new(4, 100).compute("", &PROMPT[..8], 7).context);
    }

    #[test]
    fn the_oldest_block_goes_first() {
        let mut cache = PrefixCache::new(1, 2);
        cache.compute("", &[1, 2, 3], 7);
        assert_eq!(cache.len(), 2);
        assert_eq!(cache.compute("", &[1, 2, 3], 7).cached, 0);
    }
}
