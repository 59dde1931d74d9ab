//! From any tree to any other, exactly; what does not change is not touched.

use super::kit_tests::*;

#[test]
fn every_tree_becomes_every_other_exactly_and_unchanged_files_are_not_touched() {
    let ground = Ground::new();
    let all_modes = is_root();
    if !all_modes {
        eprintln!("SKIPPED: needs root; modes that stop their owner were not tried");
    }
    for seed in 0..3000 {
        let mut dice = Dice::new(seed);
        let old = dice.tree(all_modes);
        let new = match dice.roll(4) {
            0 => dice.tree(all_modes),
            _ => dice.change(&old, all_modes),
        };
        ground.build(&old);
        let mut before = marks(&ground, &old);
        before.retain(|path, _| old.get(path) == new.get(path));
        let items = ground.items(&old, &new);
        let outcome = ground.go(&items, None).unwrap_or_else(|error| {
            panic!(
                "seed {seed}: {error} {:?}",
                std::error::Error::source(&error)
            )
        });
        assert!(outcome.rolled_back.is_none(), "seed {seed}: {outcome:?}");
        assert_eq!(outcome.left, [], "seed {seed}");
        assert_eq!(ground.read(), new, "seed {seed}");
        let mut after = marks(&ground, &new);
        after.retain(|path, _| before.contains_key(path));
        assert_eq!(after, before, "seed {seed}");
    }
}
