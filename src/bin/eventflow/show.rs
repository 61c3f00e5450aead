//! `eventflow show`: an event and its life.

use std::{fmt::Write as _, time::Duration};

use chrono::Local;
use clap::Args;
use eventflow::{
    event::Event,
    spoke::SpokeConfig,
    wire::{Association, Attempt, GroupTrace, RoundTrace, Trace},
};

use crate::{
    connect,
    failure::Failure,
    group::called,
    legible::Legible,
    output::{Printer, Style, harmless, json, time},
    parse,
    stop::Stop,
};

/// Print one event and what became of it: published by whom, how it stands in each group, attempts, outcome.
#[derive(Debug, Args)]
#[command(after_help = "Example: eventflow show 01J8Z3N0Q4X5V6W7Y8Z9A0B1C2")]
pub(crate) struct Show {
    /// The event's id
    pub(crate) id: String,
    /// How long to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::duration)]
    pub(crate) timeout: Duration,
}

/// Prints one event and what became of it.
pub(crate) async fn run(
    arguments: Show,
    mut config: SpokeConfig,
    mut printer: Printer,
    stop: Stop,
) -> Result<(), Failure> {
    config.request_deadline = arguments.timeout;
    let spoke = connect::connect(config, &stop).await?;
    let (event, trace) = stop.unless_requested(spoke.show(&arguments.id)).await?;
    spoke.close().await;
    let text = match printer.style() {
        Style::Json => json(&Shown { event: Legible(&event), trace: &trace }),
        Style::People { .. } => story(&event, &trace, |millis| time(millis, &Local)),
    };
    printer.line(&text)?;
    printer.flush()?;
    Ok(())
}

/// The life of an event as programs read it.
#[derive(serde::Serialize)]
struct Shown<'a> {
    event: Legible<'a>,
    trace: &'a Trace,
}

/// The life of an event as people read it.
pub(crate) fn story(event: &Event, trace: &Trace, time: impl Fn(i64) -> String) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{name:<10} {}", harmless(value));
    };
    row("id", &event.id);
    row("domain", &event.domain);
    row("name", &event.name);
    row("pid", &event.pid);
    if let Some(rid) = &event.rid {
        row("answers", rid);
    }
    row("stored", &time(event.timestamp));
    if let Some(scheduled) = trace.scheduled {
        row("scheduled", &time(scheduled));
    }
    if let Some(recurring) = &trace.recurring {
        row("recurring", recurring);
    }
    if let Some(published) = trace.published {
        let by = trace.publisher.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        row("published", &format!("{}{by}", time(published)));
    }
    if let Some(hub) = &trace.hub {
        let number = trace.seq.map(|seq| format!(" as number {seq}")).unwrap_or_default();
        row("hub", &format!("{hub}{number}"));
    }
    let by = trace.consumer.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let at = trace.ended.map(|at| format!(" at {}", time(at))).unwrap_or_default();
    // Of the default group, whoever else has it.
    let others_want_it = trace.groups.iter().any(|stands| stands.group.is_some());
    let whose = if others_want_it { " in the default group" } else { "" };
    row("state", &format!("{}{whose}{by}{at}", trace.state));
    if trace.state == "orphan" && !others_want_it {
        row(
            "",
            "nobody consumes such events yet: a consumer of the default group that comes within the hub's orphan_keep gets it",
        );
    }
    for group in &trace.groups {
        row("group", &standing(group, &time));
    }
    for round in &trace.redriven {
        row("redriven", &redriven(round, &time));
    }
    for with in &trace.associations {
        row("belongs to", &belonging(with));
    }
    for attempt in &trace.attempts {
        row("attempt", &told(attempt, &time));
        for line in attempt.error.lines() {
            row("", line);
        }
    }
    row("data", event.data.as_str());
    out.truncate(out.trim_end().len());
    out
}

/// How it stands in a group.
fn standing(group: &GroupTrace, time: impl Fn(i64) -> String) -> String {
    let GroupTrace { group, state, round, attempts, consumer, since, due, ended } = group;
    let mut text = format!("{}: {state}", called(group.as_ref().map_or("", |group| group.as_str())));
    text += &consumer.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    text += &since.map(|since| format!(" since {}", time(since))).unwrap_or_default();
    text += &ended.map(|at| format!(" at {}", time(at))).unwrap_or_default();
    if *round > 1 {
        text += &format!(", round {round}");
    }
    match attempts {
        0 => {}
        1 => text += ", 1 attempt failed",
        _ => text += &format!(", {attempts} attempts failed"),
    }
    match (state.as_str(), due) {
        ("claimed", Some(due)) => text += &format!(", its lease runs until {}", time(*due)),
        (_, Some(due)) => text += &format!(", next attempt at {}", time(*due)),
        _ => {}
    }
    text
}

/// How an earlier round ended.
fn redriven(round: &RoundTrace, time: impl Fn(i64) -> String) -> String {
    let RoundTrace { group, round, state, consumer, ended } = round;
    let by = consumer.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let group = called(group.as_ref().map_or("", |group| group.as_str()));
    format!("{group}: after round {round}, {state}{by} at {}", time(*ended))
}

fn belonging(with: &Association) -> String {
    match with {
        Association::ChildProcess { domain, cpid } => format!("the child process {domain} {cpid}"),
        Association::Entity { eid } => format!("the entity {eid}"),
    }
}

fn told(attempt: &Attempt, time: impl Fn(i64) -> String) -> String {
    let Attempt { number, round, group, consumer, started, ended, reason, .. } = attempt;
    let group = group.as_ref().map(|group| format!(" of group {group}")).unwrap_or_default();
    let round = if *round > 1 { format!(" in round {round}") } else { String::new() };
    let took = ended.saturating_sub(*started);
    format!("{number}{group}{round} claimed at {} by {consumer}, {reason} after {took} ms", time(*started))
}

#[cfg(test)]
mod tests {
    use eventflow::event::Uid;

    use super::*;
    use crate::output::tests::event;

    /// Dead in the default group, retrying in a named one.
    fn stands(group: Option<&'static str>) -> GroupTrace {
        let group = group.map(|name| eventflow::event::Group::parse(name).unwrap());
        let (state, consumer, since) = ("retrying".to_owned(), None, None);
        if group.is_some() {
            return GroupTrace {
                group,
                state,
                round: 2,
                attempts: 3,
                consumer,
                since,
                due: Some(90),
                ended: None,
            };
        }
        let (state, consumer) = ("dead".to_owned(), Some(Uid::parse("C.SPOKE").unwrap()));
        GroupTrace { group, state, round: 1, attempts: 1, consumer, since, due: None, ended: Some(40) }
    }

    #[test]
    fn a_claim_and_its_lease_are_told() {
        let held = GroupTrace {
            state: "claimed".to_owned(),
            round: 1,
            attempts: 0,
            consumer: Some(Uid::parse("C.SPOKE").unwrap()),
            since: Some(10),
            ..stands(Some("billing"))
        };
        let told = standing(&held, |millis| format!("t{millis}"));
        assert_eq!(told, "billing: claimed by C.SPOKE since t10, its lease runs until t90");
    }

    #[test]
    fn the_story_names_everybody_and_their_attempts() {
        let uid = |uid: &str| Uid::parse(uid.to_owned()).unwrap();
        let trace = Trace {
            scheduled: None,
            recurring: None,
            publisher: Some(uid("P.SPOKE")),
            published: Some(5),
            hub: Some(uid("H.HUB")),
            seq: Some(7),
            state: "dead".to_owned(),
            consumer: Some(uid("C.SPOKE")),
            ended: Some(40),
            groups: vec![stands(None), stands(Some("billing"))],
            redriven: vec![RoundTrace {
                group: Some(eventflow::event::Group::parse("billing").unwrap()),
                round: 1,
                state: "dead".to_owned(),
                consumer: Some(uid("C.SPOKE")),
                ended: 50,
            }],
            associations: vec![
                Association::ChildProcess {
                    domain: eventflow::event::Domain::parse("parcels").unwrap(),
                    cpid: eventflow::event::Pid::parse("parcel-7").unwrap(),
                },
                Association::Entity { eid: eventflow::event::Eid::parse("customer-3").unwrap() },
            ],
            attempts: vec![Attempt {
                round: 1,
                number: 1,
                group: None,
                consumer: uid("C.SPOKE"),
                started: 10,
                ended: 40,
                reason: "nack".to_owned(),
                error: "exit code 1: no such\u{1b} order\ntry again".to_owned(),
            }],
        };
        let text = story(&event(Some("id-0"), "{}"), &trace, |millis| format!("t{millis}"));
        let expected = "\
id         id-1
domain     orders
name       created
pid        order-1
answers    id-0
stored     t1700000000123
published  t5 by P.SPOKE
hub        H.HUB as number 7
state      dead in the default group by C.SPOKE at t40
group      (default): dead by C.SPOKE at t40, 1 attempt failed
group      billing: retrying, round 2, 3 attempts failed, next attempt at t90
redriven   billing: after round 1, dead by C.SPOKE at t50
belongs to the child process parcels parcel-7
belongs to the entity customer-3
attempt    1 claimed at t10 by C.SPOKE, nack after 30 ms
           exit code 1: no such\u{FFFD} order
           try again
data       {}";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_story_of_a_new_event_is_short() {
        let trace = Trace {
            groups: Vec::new(),
            redriven: Vec::new(),
            associations: Vec::new(),
            scheduled: None,
            recurring: None,
            publisher: None,
            published: None,
            hub: None,
            seq: None,
            state: "persisted".to_owned(),
            consumer: None,
            ended: None,
            attempts: Vec::new(),
        };
        let text = story(&event(None, "{}"), &trace, |_| String::new());
        assert!(text.contains("state      persisted\n"), "{text}");
        let orphan = Trace { state: "orphan".to_owned(), ..trace.clone() };
        let orphan = story(&event(None, "{}"), &orphan, |_| String::new());
        assert!(
            orphan.contains("orphan\n           nobody consumes such events yet: a consumer of"),
            "{orphan}"
        );
        let elsewhere =
            Trace { state: "orphan".to_owned(), groups: vec![stands(Some("billing"))], ..trace.clone() };
        let elsewhere = story(&event(None, "{}"), &elsewhere, |_| String::new());
        assert!(
            elsewhere.contains("state      orphan in the default group\ngroup      billing: "),
            "{elsewhere}"
        );
        assert!(!text.contains("published") && !text.contains("answers") && !text.contains("hub "));
    }
}
