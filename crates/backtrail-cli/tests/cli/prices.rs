//! The user's own prices in `config.toml`: read, shown, and refused with a hint.

use serde_json::json;

use crate::kit::{Cli, Ran};

fn config(text: &str, args: &[&str]) -> (Cli, Ran) {
    let cli = Cli::new();
    std::fs::create_dir_all(cli.store()).unwrap();
    std::fs::write(cli.store().join("config.toml"), text).unwrap();
    let ran = cli.run(args);
    (cli, ran)
}

#[test]
fn own_prices_are_settings() {
    let text = "[prices.\"my-local-model\"]\ninput = 0.5\noutput = 2\ncache_read = 0.05\n\
                [prices.\"gpt-5.2\"]\ninput = 0\noutput = 0.0\n";
    let (cli, ran) = config(text, &["config", "--json"]);
    let rows = ran.json();
    let mut rows = rows.as_array().unwrap().iter();
    let row = rows.find(|row| row["name"] == "prices").unwrap();
    let local = &row["value"]["my-local-model"];
    assert_eq!(
        *local,
        json!({"input": 0.5, "output": 2.0, "cache_read": 0.05, "cache_write": null, "cache_write_1h": null})
    );
    assert_eq!(row["value"]["gpt-5.2"]["input"], 0.0);
    let shown = cli.run(&["config"]);
    assert!(
        shown.stdout.contains("prices") && shown.stdout.contains("my-local-model"),
        "{shown:#?}"
    );
    // Without any, there is nothing to show.
    let (_, none) = config("", &["config"]);
    assert!(!none.stdout.contains("my-local-model"), "{none:#?}");
}

#[test]
fn a_wrong_price_names_the_file_and_the_key_with_a_hint() {
    for (text, says, hint) in [
        ("prices = 5", "prices must be a table of models", "[prices."),
        ("prices.x = 5", "prices.\"x\" must be a table", "[prices."),
        (
            "[prices.x]\ninput = -1\noutput = 1",
            "prices.\"x\": input must be dollars, from 0 to a million, not -1",
            "input = 0.5",
        ),
        (
            "[prices.x]\ninput = 1\noutput = \"cheap\"",
            "prices.\"x\": output must be dollars, from 0 to a million, not \"cheap\"",
            "output = 0.5",
        ),
        ("[prices.x]\ninput = nan\noutput = 1", "not NaN", "input"),
        ("[prices.x]\ninput = inf\noutput = 1", "not inf", "input"),
        ("[prices.x]\ninput = 1e30\noutput = 1", "to a million", ""),
        (
            "[prices.x]\ninput = []\noutput = 1",
            "not a value of type array",
            "",
        ),
        (
            "[prices.x]\ninput = 1",
            "prices.\"x\" has no price for output",
            "output = 0.5",
        ),
        (
            "[prices.x]\ninput = 1\noutput = 2\ncache_raed = 1",
            "prices.\"x\": unknown price \"cache_raed\"",
            "did you mean cache_read?",
        ),
        (
            "[prices.x]\nthe-whole-thing = 1",
            "unknown price \"the-whole-thing\"",
            "known prices: input, output, cache_read",
        ),
        (
            "[prices.gpt-5.2]\ninput = 1\noutput = 2",
            "prices.\"gpt-5\" must be a table of amounts",
            "a name with a dot needs quotes: [prices.\"gpt-5.2\"]",
        ),
        (
            "[prices.\"\"]\ninput = 1\noutput = 2",
            "the name of the model is missing",
            "[prices.",
        ),
        (
            "price = 1",
            "unknown setting \"price\"",
            "did you mean prices?",
        ),
    ] {
        let (_, ran) = config(text, &["config"]);
        assert_eq!(ran.code, 2, "{text}: {ran:#?}");
        assert!(ran.stderr.contains(says), "{text}: {}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{text}: {}", ran.stderr);
        assert!(ran.stderr.contains("config.toml"), "{text}: {}", ran.stderr);
    }
    // A name from a file is no way to the terminal.
    let (_, ran) = config("[prices.\"\\u001b[31mx\"]\ninput = 1", &["config"]);
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:#?}");
}
