//! The cost of calls: known models at the price of their day, the user's own prices
//! first, and no price for unknown models.

use backtrail::{Timestamp, Usage};
use backtrail_index::{Money, Price, Prices};

const MILLION: u64 = 1_000_000;

/// A moment in November 2025.
fn then() -> Option<Timestamp> {
    at("2025-11-16T12:00:00Z")
}

fn at(text: &str) -> Option<Timestamp> {
    Some(text.parse().expect("a moment"))
}

/// The price of a million tokens in short prompts, in billionths.
fn input_price(model: &str) -> Option<i64> {
    let short = Prices::default().cost(model, then(), &Usage::new(1_000, 0));
    short.map(|Money(cost)| cost * 1_000)
}

#[test]
fn every_kind_of_token_has_its_own_price() {
    let prices = Prices::default();
    let usage = Usage::new(1_000, 2_000)
        .reasoning(500)
        .cache_creation(4_000)
        .cache_creation_1h(1_000)
        .cache_read(10_000);
    // Claude Opus 4.1, in dollars per million: input 15, output 75, cache writes 18.75
    // for five minutes and 30 for an hour, cache reads 1.5.
    let expected =
        15_000 * 1_000 + 75_000 * 2_000 + 18_750 * 3_000 + 30_000 * 1_000 + 1_500 * 10_000;
    assert_eq!(
        prices.cost("claude-opus-4-1-20250805", then(), &usage),
        Some(Money(expected))
    );
    // GPT-5: input 1.25, cached 0.125, output 10; a cache write costs no more than input.
    let expected = 1_250 * 1_000 + 10_000 * 2_000 + 1_250 * 4_000 + 125 * 10_000;
    assert_eq!(prices.cost("gpt-5", then(), &usage), Some(Money(expected)));
}

#[test]
fn an_hour_in_the_cache_costs_twice_the_input_wherever_claude_is_sold() {
    let usage = Usage::new(0, 0)
        .cache_creation(1_000)
        .cache_creation_1h(1_000);
    for (model, input) in [
        ("claude-sonnet-4-5-20250929", 3_000),
        ("claude-3-5-haiku-20241022", 800),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", 3_000),
        ("openrouter/anthropic/claude-sonnet-4.5", 3_000),
    ] {
        let cost = Prices::default().cost(model, then(), &usage);
        assert_eq!(cost, Some(Money(2 * input * 1_000)), "{model}");
    }
}

#[test]
fn one_model_has_one_price_however_it_is_spelt() {
    for (spellings, dollars) in [
        (
            &[
                "claude-opus-4-1",
                "claude-opus-4-1-20250805",
                "Claude-Opus-4-1",
                " claude-opus-4-1-20250805[1m] ",
                "claude-opus-4-1@20250805",
                "claude-opus-4-1-latest",
                "claude-opus-4-1-thinking",
                "anthropic/claude-opus-4-1-20250805",
                "anthropic/claude-opus-4.1",
                "openrouter/anthropic/claude-opus-4.1",
                "litellm/anthropic/claude-opus-4-1",
                "vertex_ai/claude-opus-4-1@20250805",
                "us.anthropic.claude-opus-4-1-20250805-v1:0",
                "anthropic.claude-opus-4-1-20250805-v1:0",
                "bedrock/us.anthropic.claude-opus-4-1-20250805-v1:0",
                "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-1-20250805-v1:0",
            ][..],
            15.0,
        ),
        (
            &[
                "gpt-5",
                "gpt-5-2025-08-07",
                "gpt-5-20250807",
                "openai/gpt-5",
                "openai-codex/gpt-5",
                "azure/gpt-5",
                "gpt-5-codex",
                "gpt-5-high",
                "GPT-5",
            ],
            1.25,
        ),
        (
            &[
                "gemini-2.5-pro",
                "models/gemini-2.5-pro",
                "google/gemini-2.5-pro",
                "gemini/gemini-2.5-pro",
                "gemini-2.5-pro-preview-05-06",
                "publishers/google/models/gemini-2.5-pro",
            ],
            1.25,
        ),
        (&["grok-4", "xai/grok-4", "x-ai/grok-4-0709"], 3.0),
        (
            &[
                "claude-sonnet-4",
                "claude-sonnet-4-0",
                "claude-sonnet-4-20250514",
                "claude-sonnet-4-20991231",
                "claude-sonnet-4-2025-05-14",
                "claude-sonnet-4@20250514",
                "claude-sonnet-4@2025-05-14",
                "claude-sonnet-4-latest",
                "claude-sonnet-4@latest",
                "claude-sonnet-4-20250514-thinking",
                "claude-sonnet-4-20250514[1m]",
                "anthropic/claude-sonnet-4-20250514",
                "openrouter/anthropic/claude-sonnet-4",
                "vertex_ai/claude-sonnet-4@20250514",
                "us.anthropic.claude-sonnet-4-20250514-v1:0",
                "eu.anthropic.claude-sonnet-4-20250514-v1:0",
                "apac.anthropic.claude-sonnet-4-20250514-v1:0",
                "global.anthropic.claude-sonnet-4-20250514-v1:0",
                "anthropic.claude-sonnet-4-20250514-v1:0",
                "bedrock/anthropic.claude-sonnet-4-20250514-v1:0",
            ],
            3.0,
        ),
        (
            &[
                "claude-opus-4",
                "claude-opus-4-20250514",
                // A date that no price list has.
                "claude-opus-4-20250601",
                "claude-opus-4-2025-06-01",
                "claude-opus-4@20250514",
                "claude-opus-4-latest",
                "anthropic/claude-opus-4-20250514",
                "us.anthropic.claude-opus-4-20250514-v1:0",
            ],
            15.0,
        ),
        (
            &[
                "claude-3-5-haiku-20241022",
                "claude-3-5-haiku-latest",
                "claude-3-5-haiku@20241022",
            ],
            0.8,
        ),
        (
            &[
                "claude-haiku-4-5",
                "claude-haiku-4-5-20251001",
                "claude-haiku-4-5@20251001",
            ],
            1.0,
        ),
        (
            &[
                "gpt-4o",
                "gpt-4o-2024-08-06",
                "gpt-4o-2031-01-02",
                "openai/gpt-4o-latest",
            ],
            2.5,
        ),
        (
            &[
                "gpt-4o-mini",
                "gpt-4o-mini-2024-07-18",
                "gpt-4o-mini-2031-01-02",
            ],
            0.15,
        ),
        (
            &["gpt-5-mini", "gpt-5-mini-2025-08-07", "gpt-5-mini-20250807"],
            0.25,
        ),
        (
            &[
                "gemini-2.5-flash",
                "gemini-2.5-flash-latest",
                "gemini-2.5-flash@20250617",
            ],
            0.3,
        ),
    ] {
        let expected = Some((dollars * 1e9) as i64);
        for spelling in spellings {
            assert_eq!(input_price(spelling), expected, "{spelling}");
        }
    }
}

#[test]
fn a_name_that_only_resembles_a_model_is_unpriced() {
    let long = "claude-opus-4-1".repeat(100);
    for name in [
        "",
        " ",
        "/",
        "[]",
        "models/",
        "gpt-99-local",
        "gpt-5-local",
        "gpt-5.2.1-mine",
        "my-claude-finetune",
        "my-claude-opus-4-1",
        "claude",
        "claude-opus-4-1-my-tuning",
        "claude-opus-4-12",
        "claude-opus-4-1-2",
        "claude-opus-4-1x",
        // Neither a date nor a revision.
        "claude-sonnet-4-20251",
        "claude-sonnet-4-2025051",
        "claude-sonnet-4-202505141",
        "claude-sonnet-4-20251350",
        "claude-sonnet-4-20250532",
        "claude-sonnet-4-19990101",
        "claude-sonnet-4-20250514-mine",
        "claude-sonnet-4-mine-20250514",
        "claude-sonnet-4@mine",
        "claude-sonnet-4-v9:0",
        "my-claude-sonnet-4-20250514",
        "claude-sonnet-20250514",
        "claude-20250514",
        "sonnet-4-20250514",
        "claude-opus-4-1234",
        "claude-opus-4-1-99999999",
        "-20250514",
        "20250514",
        "latest",
        "-latest",
        "@20250514",
        "anthropic/20250514",
        "gpt-4o-tuned-2024-08-06",
        "gpt-4o-mine-v2",
        "claude-opus-4-v2-20250514",
        "claude-opus-4-v1:0",
        "mygpt-4o-2024-08-06",
        "not-gemini-1.5-flash",
        "gemini-1.5-flash-tuned-by-me",
        "gemini-2.5-proton",
        "my-grok",
        "xus.anthropic.claude-opus-4-1-20250805-v1:0",
        "us.anthropic.my-claude-opus-4-1-20250805-v1:0",
        "someone/claude-opus-4-1",
        "llama3.1:70b",
        "qwen3-coder",
        "<synthetic>",
        "unknown",
        "o3-of-mine",
        "whisper-1",
        "клод-4",
        "claude-opus-4-1\u{0}",
        long.as_str(),
    ] {
        assert_eq!(
            Prices::default().cost(name, then(), &Usage::new(MILLION, MILLION)),
            None,
            "{name:?}"
        );
    }
}

#[test]
fn calls_are_priced_as_of_their_day() {
    let prices = Prices::default();
    let usage = Usage::new(MILLION, 0);
    let cost = |when| prices.cost("o3", when, &usage).map(Money::dollars);
    // o3 became cheaper on 10 June 2025.
    assert_eq!(cost(at("2025-06-01T00:00:00Z")), Some(10.0));
    assert_eq!(cost(at("2025-07-01T00:00:00Z")), Some(2.0));
    assert_eq!(cost(at("2025-06-01T23:59:59Z")), Some(10.0));
    assert_eq!(cost(None), Some(2.0), "without a time: the newest price");
    for odd in ["0001-01-01T00:00:00Z", "9999-12-30T00:00:00Z"] {
        assert!(cost(at(odd)).is_some());
    }
}

#[test]
fn a_price_that_depends_on_the_time_of_day_does() {
    let prices = Prices::default();
    let day = |hour: u32| at(&format!("2025-03-01T{hour:02}:45:00Z"));
    let cost = |hour| {
        let usage = Usage::new(MILLION, 0);
        prices.cost("deepseek-reasoner", day(hour), &usage).unwrap()
    };
    // DeepSeek was cheaper from 16:30 to 00:30 UTC. An hour has its own price, in
    // whatever order it is looked up.
    let noon = cost(12);
    let night = cost(20);
    assert!(night < noon, "{night} {noon}");
    assert_eq!((cost(1), cost(15)), (noon, noon));
    assert_eq!((cost(17), cost(23)), (night, night));
}

#[test]
fn long_prompts_cost_more_where_the_provider_says_so() {
    let prices = Prices::default();
    let cost = |usage: Usage| prices.cost("gemini-2.5-pro", then(), &usage).unwrap();
    // Gemini 2.5 Pro: input 1.25, output 10; prompts of more than 200,000 tokens 2.5 and 15.
    assert_eq!(
        cost(Usage::new(200_000, 10)),
        Money(1_250 * 200_000 + 10_000 * 10)
    );
    assert_eq!(
        cost(Usage::new(200_001, 10)),
        Money(2_500 * 200_001 + 15_000 * 10)
    );
    // Cache reads are part of the prompt.
    let cached = cost(Usage::new(100_000, 0).cache_read(150_000));
    let alone = cost(Usage::new(100_000, 0));
    assert!(cached.0 > 2 * alone.0, "{cached} {alone}");
}

#[test]
fn own_prices_come_first() {
    let mut local = Price::new("My-Local-Model", 0.5, 1.5);
    local.cache_read = Some(0.05);
    let mut written = Price::new("writer", 1.0, 2.0);
    written.cache_write = Some(3.0);
    let prices = Prices::with_own(vec![
        local,
        written,
        Price::new("gpt-5", 100.0, 200.0),
        Price::new("gpt-5-mini", 7.0, 8.0),
    ]);
    let dollars =
        |model: &str, usage: &Usage| prices.cost(model, then(), usage).map(Money::dollars);
    let all = Usage::new(MILLION, MILLION)
        .cache_creation(2 * MILLION)
        .cache_creation_1h(MILLION)
        .cache_read(MILLION);
    assert_eq!(
        dollars("my-local-model", &all),
        Some(0.5 + 1.5 + 2.0 * 0.5 + 0.05)
    );
    assert_eq!(dollars("MY-LOCAL-MODEL:q4", &all), Some(3.05));
    // A price for writes also applies to one-hour writes.
    assert_eq!(dollars("writer", &all), Some(1.0 + 2.0 + 2.0 * 3.0 + 1.0));
    let input = Usage::new(MILLION, 0);
    assert_eq!(dollars("gpt-5", &input), Some(100.0));
    assert_eq!(dollars("openai/gpt-5", &input), Some(100.0));
    assert_eq!(dollars("gpt-5-2025-08-07", &input), Some(100.0));
    assert_eq!(
        dollars("gpt-5-mini-2025-08-07", &input),
        Some(7.0),
        "the longest name"
    );
    assert_eq!(
        dollars("claude-opus-4-1", &Usage::new(1_000, 0)),
        Some(0.015)
    );
}

#[test]
fn amounts_are_exact_and_never_overflow() {
    let prices = Prices::with_own(vec![
        Price::new("thirds", 0.1, 0.2),
        Price::new("much", 1e6, 1e6),
    ]);
    // A tenth of a dollar per million: a token costs 100 billionths, however many there
    // are.
    for tokens in [1, 3, 7, 999_999_999_999] {
        let cost = prices.cost("thirds", None, &Usage::new(tokens, 0));
        assert_eq!(cost, Some(Money(100 * tokens as i64)));
    }
    let most = Usage::new(u64::MAX, u64::MAX)
        .reasoning(u64::MAX)
        .cache_creation(u64::MAX)
        .cache_creation_1h(u64::MAX)
        .cache_read(u64::MAX);
    for model in ["thirds", "much", "claude-opus-4-1", "gemini-2.5-pro"] {
        assert_eq!(prices.cost(model, None, &most), Some(Money(i64::MAX)));
    }
    // A part that is larger than its whole counts as the whole.
    let odd = Usage::new(0, 10).reasoning(1_000).cache_creation_1h(50);
    assert_eq!(prices.cost("thirds", None, &odd), Some(Money(200 * 10)));
    assert_eq!(
        prices.cost("thirds", None, &Usage::default()),
        Some(Money(0))
    );
}

#[test]
fn invalid_own_prices_are_skipped() {
    let bad = [f64::NAN, -1.0, f64::INFINITY, 1e300];
    let own = bad
        .into_iter()
        .map(|amount| Price::new("broken", amount, 1.0))
        .chain([Price::new(" ", 1.0, 1.0)])
        .collect();
    let prices = Prices::with_own(own);
    assert_eq!(prices.cost("broken", None, &Usage::new(1, 1)), None);
    assert_eq!(prices.cost("anything", None, &Usage::new(1, 1)), None);
    assert_eq!(prices.fingerprint(), Prices::default().fingerprint());
}

#[test]
fn the_fingerprint_changes_with_the_prices_alone() {
    let one = || Price::new("one", 1.0, 2.0);
    let two = || Price::new("two", 1.0, 2.0);
    let of = |own: Vec<Price>| Prices::with_own(own).fingerprint();
    assert_eq!(of(vec![one(), two()]), of(vec![two(), one()]));
    assert_ne!(of(vec![one()]), of(vec![two()]));
    assert_ne!(of(vec![one()]), of(vec![]));
    let mut cached = one();
    cached.cache_read = Some(0.5);
    assert_ne!(of(vec![one()]), of(vec![cached]));
    let prices = Prices::with_own(vec![one()]);
    let before = prices.fingerprint();
    prices.cost("gpt-5", None, &Usage::new(1, 1));
    assert_eq!(prices.fingerprint(), before);
}

/// Price lists are assembled from single lookups, so that a call is priced without
/// another lookup. The result must cost what the source says, at any prompt length.
#[test]
fn remembered_price_lists_say_what_their_source_says() {
    use genai_prices::{Calculator, PriceRequest, UsageKey as Key};
    let prices = Prices::default();
    let mut compared = 0;
    for provider in ["anthropic", "openai", "google", "x-ai", "mistral", "aws"] {
        let list = Calculator::bundled().find_provider(Some(provider), None);
        for model in list.unwrap().unwrap().models() {
            for (prompt, when) in [
                (900, "2024-12-24T10:00:00Z"),
                (150_000, "2025-11-16T10:00:00Z"),
                (300_000, "2026-06-01T10:00:00Z"),
            ] {
                let usage = Usage::new(prompt / 2, 700)
                    .cache_read(prompt / 4)
                    .cache_creation(prompt - prompt / 2 - prompt / 4);
                let Some(cost) =
                    prices.cost(&format!("{provider}/{}", model.id()), at(when), &usage)
                else {
                    continue;
                };
                let asked = [
                    (Key::INPUT_TOKENS, prompt as f64),
                    (Key::CACHE_READ_TOKENS, usage.cache_read_input_tokens as f64),
                    (
                        Key::CACHE_WRITE_TOKENS,
                        usage.cache_creation_input_tokens as f64,
                    ),
                    (Key::OUTPUT_TOKENS, 700.0),
                ]
                .into_iter()
                .collect();
                let moment = std::time::UNIX_EPOCH
                    + std::time::Duration::from_millis(at(when).unwrap().as_millis() as u64);
                let request = PriceRequest::new(model.id(), &asked)
                    .with_provider_id(provider)
                    .with_timestamp(moment);
                let source = Calculator::bundled()
                    .calculate(&request)
                    .unwrap()
                    .total_price;
                let apart = (cost.dollars() - source).abs();
                assert!(apart < 2e-9, "{provider}/{}: {cost} {source}", model.id());
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

/// A measurement, not a promise: `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "prints how long lookups take"]
fn how_long_lookups_take() {
    let begin = std::time::Instant::now();
    let prices = Prices::default();
    let usage = Usage::new(1_000, 1_000);
    prices.cost("claude-opus-4-1", then(), &usage);
    eprintln!("first of all: {:?}", begin.elapsed());
    for model in [
        "gpt-5",
        "gemini-2.5-pro",
        "openrouter/qwen/qwen3-coder",
        "deepseek-chat",
    ] {
        let begin = std::time::Instant::now();
        prices.cost(model, then(), &usage);
        eprintln!("{model}: {:?}", begin.elapsed());
    }
    let begin = std::time::Instant::now();
    for day in 0..365 {
        let at = Timestamp::from_millis(1_750_000_000_000 + day * 86_400_000);
        prices.cost("claude-opus-4-1", at, &usage);
    }
    eprintln!("a new day: {:?}", begin.elapsed() / 365);
    let begin = std::time::Instant::now();
    for _ in 0..MILLION {
        prices.cost("claude-opus-4-1", then(), &usage);
    }
    eprintln!("a known pair: {:?}", begin.elapsed() / MILLION as u32);
}
