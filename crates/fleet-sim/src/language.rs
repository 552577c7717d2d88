//! The simulated model: weights are a digest, and tokens and logprobs are a hash of weights and context.
//!
//! The context is what attention would see: a fold over every position of the token there and of the
//! weights that computed its keys and values. So equal weights give equal tokens, a longer prompt
//! continues a shorter one, and keys and values of other weights change every later token.

/// One round of SplitMix64 over two words: cheap, and every input bit reaches every output bit.
pub(crate) const fn mix(left: u64, right: u64) -> u64 {
    let mut word = left.rotate_left(29) ^ right.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The same over bytes; the length counts.
pub(crate) fn mix_bytes(seed: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(mix(seed, bytes.len() as u64), |word, chunk| {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        mix(word, u64::from_le_bytes(padded))
    })
}

/// What attention sees after some positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context(pub(crate) u64);

impl Context {
    /// Before the first position.
    pub(crate) const EMPTY: Self = Self(0x636f_6e74_6578_7400);

    /// One position more, whose keys and values `weights` computed.
    pub(crate) const fn then(self, token: u32, weights: u64) -> Self {
        Self(mix(mix(self.0, weights), token as u64))
    }
}

/// A distribution over the next token, as far as anybody can see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    seed: u64,
    vocabulary: u32,
}

impl Next {
    /// What `weights` make of `context`. `draw` is 0 for a greedy request.
    pub(crate) const fn new(weights: u64, context: Context, draw: u64, vocabulary: u32) -> Self {
        let seed = mix(weights, context.0);
        Self { seed: if draw == 0 { seed } else { mix(seed, draw) }, vocabulary }
    }

    /// The chosen token.
    pub(crate) const fn token(self) -> u32 {
        (mix(self.seed, 1) % self.vocabulary as u64) as u32
    }

    /// Its logprob: below 0 and above -3, as a chosen token's usually is.
    pub(crate) fn logprob(self) -> f32 {
        -0.01 - fraction(mix(self.seed, 2)) * 2.9
    }

    /// The `count` likeliest tokens with their logprobs, the chosen one first.
    pub(crate) fn top(self, count: usize) -> Vec<(u32, f32)> {
        let mut top = vec![(self.token(), self.logprob())];
        // A vocabulary smaller than what is asked for has no more to give.
        let count = count.min(self.vocabulary as usize);
        let mut step = 0_u64;
        while top.len() < count {
            step += 1;
            let token = (u64::from(self.token()) + step) % u64::from(self.vocabulary);
            let last = top.last().map_or(0.0, |entry| entry.1);
            top.push((token as u32, last - 0.1 - fraction(mix(self.seed, 2 + step))));
        }
        top
    }
}

/// The logprob that `weights` give to a token of the prompt, and its rank.
pub(crate) fn prompt_logprob(weights: u64, context: Context, token: u32, vocabulary: u32) -> (f32, u32) {
    let seed = mix(mix(weights, context.0), 0x0070_726f_6d70 ^ u64::from(token));
    let rank = 1 + (mix(seed, 1) % u64::from(vocabulary)) as u32;
    (-1.0 - fraction(mix(seed, 2)) * 12.0, rank)
}

/// A number in [0, 1) with 24 bits, so that it is exact as an f32.
fn fraction(word: u64) -> f32 {
    (word >> 40) as f32 / 16_777_216.0
}

/// The text of a token: every id has its own, made of syllables.
pub(crate) fn text(token: u32) -> String {
    const ONSETS: &[u8; 16] = b"bdfghjklmnprstvz";
    const VOWELS: [&str; 4] = ["a", "e", "i", "o"];
    let mut text = String::from(" ");
    let mut rest = token;
    loop {
        text.push(char::from(ONSETS[(rest % 16) as usize]));
        text.push_str(VOWELS[(rest / 16 % 4) as usize]);
        rest /= 64;
        if rest == 0 {
            return text;
        }
    }
}

/// The ids of a text prompt: one for each byte. The simulation has no tokenizer to imitate.
pub(crate) fn tokenize(text: &str, vocabulary: u32) -> Vec<u32> {
    text.bytes().map(|byte| u32::from(byte) % vocabulary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greedy(weights: u64, prompt: &[u32], count: usize) -> Vec<u32> {
        let mut context = prompt.iter().fold(Context::EMPTY, |context, &token| context.then(token, weights));
        (0..count)
            .map(|_| {
                let token = Next::new(weights, context, 0, 151_936).token();
                context = context.then(token, weights);
                token
            })
            .collect()
    }

    #[test]
    fn weights_decide_the_tokens() {
        assert_eq!(greedy(7, &[1, 2, 3], 8), greedy(7, &[1, 2, 3], 8));
        assert_ne!(greedy(7, &[1, 2, 3], 8), greedy(8, &[1, 2, 3], 8));
        assert_ne!(greedy(7, &[1, 2, 3], 8), greedy(7, &[1, 2, 4], 8));
    }

    #[test]
    fn a_longer_prompt_continues_a_shorter_one() {
        let whole = greedy(7, &[1, 2, 3], 8);
        let mut prompt = vec![1, 2, 3];
        prompt.extend(&whole[..4]);
        assert_eq!(greedy(7, &prompt, 4), whole[4..]);
    }

    #[test]
    fn logprobs_are_finite_negative_and_falling() {
        for seed in 0..2_000 {
            let top = Next::new(seed, Context::EMPTY, 0, 151_936).top(5);
            assert_eq!(top.len(), 5);
            assert!(top.iter().all(|&(token, logprob)| {
                token < 151_936 && logprob.is_finite() && logprob < 0.0 && logprob > -10.0
            }));
            assert!(top.windows(2).all(|pair| pair[0].1 > pair[1].1));
        }
        assert_eq!(Next::new(1, Context::EMPTY, 0, 2).top(5).len(), 2);
    }

    #[test]
    fn every_token_has_its_own_text() {
        let texts: std::collections::BTreeSet<_> = (0..20_000).chain(151_000..151_936).map(text).collect();
        assert_eq!(texts.len(), 20_936);
        assert!(texts.iter().all(|text| text.is_ascii() && text.len() <= 16));
    }
}
