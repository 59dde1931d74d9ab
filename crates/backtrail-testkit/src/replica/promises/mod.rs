//! What every replica promises, sentence by sentence of `backtrail::replica`.
//!
//! Each promise works on logs of its own, so it can run on a replica that has others. Those of
//! packs remove every condemned pack there is: no other promise may run at the same time, and
//! the replica must not be one that is in use.
//!
//! ```
//! use backtrail::SessionId;
//! use backtrail::replica::{BlobName, LogKey};
//! use backtrail_testkit::ManualClock;
//! use backtrail_testkit::replica::{MemoryReplica, promises};
//!
//! struct Control(MemoryReplica, ManualClock, std::sync::atomic::AtomicU32);
//!
//! impl promises::Control for Control {
//!     fn fresh(&self) -> SessionId {
//!         let n = self.2.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
//!         format!("log-{n}").parse().unwrap()
//!     }
//!     fn outlive(&self, ms: u64) {
//!         self.1.advance(ms as i64);
//!     }
//!     fn damage(&self, log: &LogKey, name: BlobName) {
//!         self.0.damage_blob(log, name);
//!     }
//! }
//!
//! let clock = ManualClock::new(1_700_000_000_000);
//! let replica = MemoryReplica::new(clock.clone());
//! promises::all(&replica, &Control(replica.clone(), clock, Default::default()));
//! ```

mod appends;
mod blobs;
mod case;
mod leases;
mod lists;
mod packs;
mod purges;
mod races;
mod reads;
mod trails;

use std::panic::{AssertUnwindSafe, catch_unwind};

use backtrail::SessionId;
use backtrail::replica::{BlobName, LogKey, Replica};

use case::Case;

/// What a test does to a replica that clients cannot.
pub trait Control: Sync {
    /// Returns an id that no log has, and that differs from all those before, also by earlier
    /// runs on the same replica.
    fn fresh(&self) -> SessionId;

    /// Returns once this time has passed by the replica's clock. Promises ask for less than a
    /// second.
    fn outlive(&self, ms: u64);

    /// Alters a byte of a blob where it is stored.
    fn damage(&self, log: &LogKey, name: BlobName);
}

/// A promise; it panics if the replica breaks it.
pub type Promise = fn(&dyn Replica, &dyn Control);

macro_rules! promises {
    ($($module:ident: $($name:ident)+;)+) => {
        /// All promises, each with its name.
        pub const PROMISES: &[(&str, Promise)] = &[
            $($((stringify!($name), |replica, control| $module::$name(&Case::new(replica, control))),)+)+
        ];
    };
}

promises! {
    leases:
        a_lease_creates_a_log_without_a_trail
        each_lease_has_a_higher_fence
        a_lease_is_held_against_others
        its_own_holder_takes_a_lease_again_and_fences_the_older_handle
        a_lease_that_ran_out_costs_nothing_until_it_is_taken
        a_renewal_prolongs_a_lease
        a_lease_that_ran_out_is_renewed_unless_it_was_taken
        a_release_lets_others_in
        a_late_release_takes_nothing_from_the_next_writer
        the_key_is_that_of_the_first_lease;
    appends:
        lines_come_after_the_end
        a_writer_whose_lease_was_taken_never_writes_again
        a_retry_is_answered_as_the_first_time
        a_retry_is_answered_whatever_the_fence_and_the_trail
        a_retry_with_another_sum_is_no_retry
        lines_that_are_there_in_part_are_not_appended
        the_fence_is_checked_before_the_end
        another_end_is_moved
        lines_out_of_order_are_never_there
        an_append_prolongs_the_lease
        a_retry_of_a_fenced_writer_takes_no_lease
        any_bytes_come_back_as_they_were;
    trails:
        a_trail_begins_with_its_opener
        a_trail_may_skip_numbers_and_start_at_a_lower_seq
        the_beginning_of_a_trail_is_answered_again
        a_trail_begins_only_at_the_head
        a_fenced_writer_begins_no_trail
        a_lower_number_begins_no_trail
        lines_go_to_the_newest_trail_alone;
    reads:
        lines_are_read_forwards
        lines_are_read_backwards
        pages_have_about_the_bytes_that_were_asked_for
        what_is_absent_is_absent;
    lists:
        a_status_counts_bytes_and_has_times
        the_trash_has_a_log_and_gives_it_back
        lists_have_each_log_once_in_order
        changes_say_what_was_appended_and_by_whom
        nothing_that_was_refused_is_a_change;
    purges:
        a_purged_log_is_gone
        a_purged_id_is_refused_for_ever
        what_was_never_there_can_be_purged
        a_writer_of_a_purged_log_writes_nothing
        no_payload_comes_back_to_a_purged_log
        a_purge_leaves_other_logs_alone;
    blobs:
        a_blob_comes_back_whole_and_in_parts
        a_blob_that_is_not_there_is_none
        payloads_belong_to_a_log_and_packs_to_all
        a_blob_is_stored_once
        a_blob_that_does_not_match_its_name_is_an_error;
    packs:
        objects_are_where_they_were_sealed
        objects_are_read_from_the_pack_that_was_sealed_last
        objects_are_read_from_packs_that_stay
        a_pack_without_bytes_is_not_sealed
        packs_are_listed_once_in_order
        seals_and_appends_are_uses
        a_pack_that_was_used_since_is_not_condemned
        condemned_packs_wait
        as_many_packs_are_removed_as_were_asked_for
        a_removed_pack_is_gone_with_its_bytes
        an_append_takes_a_condemned_pack_back
        an_append_that_relies_on_a_removed_pack_appends_nothing
        an_append_that_is_refused_takes_nothing_back
        a_trail_relies_on_packs_as_well;
    races:
        one_of_many_gets_the_lease
        one_of_many_appends_at_an_end
        a_request_that_arrives_many_times_at_once_is_carried_out_once
        followers_miss_no_change
        a_purge_leaves_nothing_behind_whatever_arrives_meanwhile
        nothing_that_a_line_names_is_removed;
}

/// Tries all promises, one after another.
///
/// # Panics
///
/// Panics if one is broken, with the names of all that are.
pub fn all(replica: &dyn Replica, control: &dyn Control) {
    let is_broken = |(_, promise): &&(&str, Promise)| {
        catch_unwind(AssertUnwindSafe(|| promise(replica, control))).is_err()
    };
    let broken: Vec<&str> = PROMISES
        .iter()
        .filter(is_broken)
        .map(|(name, _)| *name)
        .collect();
    assert!(broken.is_empty(), "the replica breaks {broken:#?}");
}
