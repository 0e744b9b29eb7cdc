//! From a spawn record to sparse features.
//!
//! | index | feature | value |
//! |---|---|---|
//! | 0 | instruction's length | ln(1 + tokens) − 6; 0 where unknown |
//! | 1 | context's length | the same |
//! | 2, 3 | instruction's, context's length unknown | 1 |
//! | 4 | position in the session | ln(1 + position) − 1 |
//! | 5 … | tools, one bucket each by hash | 1 where any of its tools is given |
//! | 5 + tool buckets … | words of instruction and context, one bucket each by hash | √(count in the bucket / words of the text) |
//!
//! The words of one text thus have a sum of squares of 1, whatever its length. The constants 6 and 1 only bring lengths and
//! positions near zero (e⁶ ≈ 400 tokens), so that a predictor that learns as it goes starts from a sensible scale.

use crate::error::{Error, Result};
use crate::predict::hash::{for_each_word, hash_in};
use crate::units::{index, to_f64};

const LENGTH_CENTER: f64 = 6.0;
const POSITION_CENTER: f64 = 1.0;
const NUMBERS: u32 = 5;
const BUCKETS_MAX: u32 = 1 << 20;
const CHARACTERS_PER_TOKEN: usize = 4;

const TOOL: u8 = b't';
const INSTRUCTION: u8 = b'i';
const CONTEXT: u8 = b'c';

/// What is known of a sub-agent when it is spawned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpawnRecord<'a> {
    /// What it is asked to do; `None` where private.
    pub instruction: Option<&'a str>,
    /// What it is given to read; `None` where private or absent.
    pub context: Option<&'a str>,
    /// Tokens of the instruction; `None` where unknown (a text that is there then counts as a token every four characters).
    pub instruction_tokens: Option<u64>,
    /// Tokens of the context, likewise.
    pub context_tokens: Option<u64>,
    /// Names of the tools that it may call.
    pub tools: &'a [&'a str],
    /// Sub-agents that its session spawned before it.
    pub position: u32,
}

/// Which features a predictor reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureSpec {
    words: bool,
    word_buckets: u32,
    tool_buckets: u32,
}

impl FeatureSpec {
    /// A specification.
    ///
    /// `words`: whether the words of the texts are read; lengths, tools and position always are. Both numbers of buckets are
    /// powers of two up to 2²⁰.
    pub fn new(words: bool, word_buckets: u32, tool_buckets: u32) -> Result<Self> {
        for (name, buckets) in [("word_buckets", word_buckets), ("tool_buckets", tool_buckets)] {
            if !buckets.is_power_of_two() || buckets > BUCKETS_MAX {
                return Err(Error::Setting {
                    name,
                    value: buckets.to_string(),
                    rule: "must be a power of two up to 1048576",
                });
            }
        }
        Ok(Self { words, word_buckets, tool_buckets })
    }

    /// Whether the words of the texts are read.
    #[must_use]
    pub fn words(&self) -> bool {
        self.words
    }

    /// Features that there are: every index lies below this.
    #[must_use]
    pub fn width(&self) -> usize {
        let words = if self.words { self.word_buckets } else { 0 };
        index(NUMBERS + self.tool_buckets + words)
    }

    /// Extracts the features of a record into `features`, whose memory is used again.
    pub fn extract_into(&self, record: &SpawnRecord<'_>, features: &mut Features) {
        features.clear();
        let lengths =
            [(record.instruction_tokens, record.instruction), (record.context_tokens, record.context)];
        let lengths = lengths.map(|(tokens, text)| length(tokens, text));
        for (index, length) in (0..).zip(lengths) {
            if let Some(value) = length {
                features.push(index, value);
            }
        }
        for (index, length) in (2..).zip(lengths) {
            if length.is_none() {
                features.push(index, 1.0);
            }
        }
        features.push(4, libm::log1p(f64::from(record.position)) - POSITION_CENTER);
        self.push_tools(record.tools, features);
        if self.words {
            let texts = [(INSTRUCTION, record.instruction), (CONTEXT, record.context)];
            self.push_words(texts, features);
        }
    }

    /// Extracts the features of a record.
    ///
    /// # Example
    ///
    /// ```
    /// # use lachesis_core::predict::{FeatureSpec, SpawnRecord};
    /// let spec = FeatureSpec::new(true, 4096, 256)?;
    /// let record = SpawnRecord { instruction: Some("Read the file"), ..SpawnRecord::default() };
    /// // A length, a length unknown, a position, and three words.
    /// assert_eq!(spec.extract(&record).indices().len(), 6);
    /// # Ok::<(), lachesis_core::error::Error>(())
    /// ```
    #[must_use]
    pub fn extract(&self, record: &SpawnRecord<'_>) -> Features {
        let mut features = Features::default();
        self.extract_into(record, &mut features);
        features
    }

    fn push_tools(&self, tools: &[&str], features: &mut Features) {
        features
            .buckets
            .extend(tools.iter().map(|tool| (bucket(hash_in(TOOL, tool), self.tool_buckets), 1.0)));
        features.buckets.sort_unstable_by_key(|&(bucket, _)| bucket);
        features.buckets.dedup_by_key(|&mut (bucket, _)| bucket);
        features.drain_buckets(NUMBERS);
    }

    fn push_words(&self, texts: [(u8, Option<&str>); 2], features: &mut Features) {
        for (namespace, text) in texts {
            let Some(text) = text else { continue };
            let mut hashes = std::mem::take(&mut features.hashes);
            hashes.clear();
            for_each_word(namespace, text, |hash| hashes.push(bucket(hash, self.word_buckets)));
            hashes.sort_unstable();
            let total = to_f64(hashes.len() as i128);
            for same in hashes.chunk_by(|left, right| left == right) {
                let share = to_f64(same.len() as i128) / total;
                features.buckets.push((same[0], libm::sqrt(share)));
            }
            features.hashes = hashes;
        }
        // A bucket that both texts reach holds the sum. The sort is stable: the instruction's part comes first.
        features.buckets.sort_by_key(|&(bucket, _)| bucket);
        features.buckets.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 += later.1;
            }
            same
        });
        features.drain_buckets(NUMBERS + self.tool_buckets);
    }
}

fn length(tokens: Option<u64>, text: Option<&str>) -> Option<f64> {
    let estimated = || text.map(|text| text.chars().count().div_ceil(CHARACTERS_PER_TOKEN) as u64);
    let tokens = tokens.or_else(estimated)?;
    Some(libm::log1p(to_f64(i128::from(tokens))) - LENGTH_CENTER)
}

/// The low bits: the number of buckets is a power of two.
fn bucket(hash: u64, buckets: u32) -> u32 {
    u32::try_from(hash & u64::from(buckets - 1)).unwrap_or(0)
}

/// Features of one spawn: the non-zero ones, by ascending index.
#[derive(Debug, Clone, Default)]
pub struct Features {
    indices: Vec<u32>,
    values: Vec<f64>,
    /// Scratch memory of the extraction.
    buckets: Vec<(u32, f64)>,
    hashes: Vec<u32>,
}

impl PartialEq for Features {
    fn eq(&self, other: &Self) -> bool {
        self.indices == other.indices && self.values == other.values
    }
}

impl Features {
    /// Indices of the non-zero features, ascending.
    #[must_use]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Their values.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Σ weight × value over the non-zero features.
    ///
    /// In eight sums that are added at the end, so that products wait for loads and not for the addition before them; always the same
    /// eight, so equal features give equal results.
    pub(super) fn dot(&self, weights: &[f64]) -> f64 {
        let product = |at: u32, value: f64| weights[index(at)] * value;
        let (indices, rest_of_indices) = self.indices.as_chunks::<8>();
        let (values, rest_of_values) = self.values.as_chunks::<8>();
        let mut sums = [0.0; 8];
        for (at, value) in indices.iter().zip(values) {
            let products: [f64; 8] = std::array::from_fn(|lane| product(at[lane], value[lane]));
            for (sum, product) in sums.iter_mut().zip(products) {
                *sum += product;
            }
        }
        let rest = rest_of_indices.iter().zip(rest_of_values);
        let rest = rest.fold(0.0, |sum, (&at, &value)| sum + product(at, value));
        let [low, high] =
            [0, 4].map(|from| (sums[from] + sums[from + 1]) + (sums[from + 2] + sums[from + 3]));
        low + high + rest
    }

    /// Index and value of each non-zero feature.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        self.indices.iter().map(|&at| index(at)).zip(self.values.iter().copied())
    }

    fn clear(&mut self) {
        self.indices.clear();
        self.values.clear();
        self.buckets.clear();
    }

    fn push(&mut self, index: u32, value: f64) {
        self.indices.push(index);
        self.values.push(value);
    }

    fn drain_buckets(&mut self, first: u32) {
        let mut buckets = std::mem::take(&mut self.buckets);
        for (bucket, value) in buckets.drain(..) {
            self.push(first + bucket, value);
        }
        self.buckets = buckets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::fnv1a_64;
    use proptest::prelude::*;

    fn spec() -> FeatureSpec {
        FeatureSpec::new(true, 4096, 256).expect("valid")
    }

    fn value_at(features: &Features, index: usize) -> Option<f64> {
        features.iter().find(|&(at, _)| at == index).map(|(_, value)| value)
    }

    fn assert_near(found: Option<f64>, expected: f64) {
        assert!(found.is_some_and(|value| (value - expected).abs() < 1e-12), "{found:?}, not {expected}");
    }

    #[test]
    fn each_feature_stands_where_the_table_says() {
        let record = SpawnRecord {
            instruction: Some("check the check list"),
            context: Some("the"),
            instruction_tokens: Some(63),
            context_tokens: None,
            tools: &["shell", "shell"],
            position: 3,
        };
        let features = spec().extract(&record);
        assert_near(value_at(&features, 0), 64f64.ln() - 6.0);
        assert_near(value_at(&features, 1), 2f64.ln() - 6.0);
        assert_near(value_at(&features, 4), 4f64.ln() - 1.0);
        assert_eq!(value_at(&features, 2), None);
        let low = |name: &str, bits| usize::try_from(fnv1a_64(name.as_bytes()) % bits).expect("small");
        assert_near(value_at(&features, 5 + low("tshell", 256)), 1.0);
        let words = 5 + 256;
        assert_near(value_at(&features, words + low("icheck", 4096)), 0.5f64.sqrt());
        assert_near(value_at(&features, words + low("ithe", 4096)), 0.5);
        assert_near(value_at(&features, words + low("ilist", 4096)), 0.5);
        assert_near(value_at(&features, words + low("cthe", 4096)), 1.0);
        assert_eq!(features.indices().len(), 3 + 1 + 4);
    }

    #[test]
    fn lengths_that_nobody_knows_are_marked() {
        let features = spec().extract(&SpawnRecord::default());
        assert_eq!(features.indices(), [2, 3, 4]);
        assert_eq!(features.values(), [1.0, 1.0, -1.0]);
    }

    #[test]
    fn without_words_texts_only_have_a_length() {
        let spec = FeatureSpec::new(false, 4096, 256).expect("valid");
        let record = SpawnRecord { instruction: Some("eight ch"), ..SpawnRecord::default() };
        let counted = SpawnRecord { instruction_tokens: Some(2), ..SpawnRecord::default() };
        assert_eq!(spec.extract(&record), spec.extract(&counted));
        assert_eq!(spec.width(), 5 + 256);
    }

    #[test]
    fn buckets_are_powers_of_two() {
        for buckets in [0, 3, 1 << 21] {
            assert!(FeatureSpec::new(true, buckets, 16).is_err());
            assert!(FeatureSpec::new(true, 16, buckets).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_record_gives_features_that_fit(
            instruction in proptest::option::of(".{0,200}"),
            context in proptest::option::of("\\PC{0,200}"),
            instruction_tokens in proptest::option::of(any::<u64>()),
            tools in proptest::collection::vec("[a-z]{1,8}", 0..6),
            position in any::<u32>(),
            buckets in 0_u32..12,
        ) {
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            let record = SpawnRecord {
                instruction: instruction.as_deref(), context: context.as_deref(), instruction_tokens,
                context_tokens: None, tools: &tools, position,
            };
            let spec = FeatureSpec::new(true, 1 << buckets, 1 << (buckets / 2)).expect("valid");
            let features = spec.extract(&record);
            prop_assert_eq!(features.indices().len(), features.values().len());
            let ascending = features.indices().iter().zip(features.indices().iter().skip(1));
            prop_assert!(ascending.clone().all(|(first, second)| first < second));
            prop_assert!(features.indices().iter().all(|&at| index(at) < spec.width()));
            prop_assert!(features.values().iter().all(|value| value.is_finite()));
            // Memory that is used again holds nothing of the record before.
            let mut again = spec.extract(&SpawnRecord { instruction: Some("what was before"), ..record });
            spec.extract_into(&record, &mut again);
            prop_assert_eq!(again, features);
        }

        #[test]
        fn the_order_of_words_and_tools_does_not_matter(
            words in proptest::collection::vec("[a-zA-Z]{1,4}", 0..30),
        ) {
            let mut turned = words.clone();
            turned.reverse();
            let texts = [words.join(" "), turned.join(", ")];
            let [first, second] = [0, 1].map(|which| {
                let list = if which == 0 { &words } else { &turned };
                let tools: Vec<&str> = list.iter().map(String::as_str).collect();
                spec().extract(&SpawnRecord {
                    instruction: Some(&texts[which]), instruction_tokens: Some(1), tools: &tools,
                    ..SpawnRecord::default()
                })
            });
            prop_assert_eq!(first, second);
        }

        #[test]
        fn words_of_a_text_have_unit_length(words in proptest::collection::vec("[a-z]{1,6}", 1..40)) {
            let text = words.join(" ");
            let record = SpawnRecord { instruction: Some(&text), ..SpawnRecord::default() };
            let features = spec().extract(&record);
            let squares: f64 = features.iter().filter(|&(at, _)| at >= 261).map(|(_, value)| value * value).sum();
            prop_assert!((squares - 1.0).abs() < 1e-12);
        }
    }
}
