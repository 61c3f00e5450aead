//! What no unit test can see: whole parts together, and the shape of the repository itself. One binary, a module
//! per promise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails may panic")]

mod a_backup_restores;
mod a_batch_is_all_or_nothing;
mod a_certificate_is_renewed_under_load;
mod a_claim_ends_with_its_link;
mod a_consumer_comes_late;
mod a_handler_may_take_long;
mod a_recurring_schedule_is_exact;
mod a_revoked_link_is_cut;
mod a_schedule_is_exact_and_once;
mod a_subscriber_comes_late;
mod a_subscription_resumes;
mod abilities;
mod acked_is_committed;
mod associations;
mod bounded;
mod certificates;
mod core_restart;
mod deletion;
mod drain;
mod drain_hands_back;
mod embedded_hubs_leave_nothing;
mod embedding;
mod golden_bytes;
mod hostile_bytes;
mod layering;
mod log_level;
mod logs;
mod looking_in;
mod npm_consumers;
mod npm_online;
mod npm_publishers;
mod npm_subscribers;
mod one_outcome;
mod order;
mod orphans_follow_their_domains_policy;
mod outcome;
mod package;
mod passports;
mod process;
mod programs;
mod publishing_twice_is_once;
mod ready_is_true;
mod replay_has_no_gap;
mod retention_keeps_what_is_needed;
mod support;
mod the_client;
mod wait_sees_what_happened_before;
mod what_became_of_it;
mod what_waits_is_counted;
