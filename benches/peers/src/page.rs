//! The tables of `docs/performance.md`, and the machine that they were made on.

use std::{fmt::Write as _, fs, path::Path};

use crate::{Failure, How, Peer, Row, Run, broker::Class, work};

const BEGIN: &str = "<!-- peers: made by benches/peers/run -->";
const END: &str = "<!-- /peers -->";

/// All tables, as Markdown.
pub fn tables(medians: &[(Row, Run)], missing: &[Peer], how: &How) -> String {
    let mut text = format!(
        "Measured on {}. {} events of {} bytes, {} publishers x {} in flight, {} consumers x {} in hand, each event \
         acked; medians of {} interleaved runs. The two columns on the right: from when an event is due to its \
         consumer, at {} events a second.\n",
        machine(),
        grouped(how.events as f64),
        work::BYTES,
        work::PUBLISHERS,
        work::WINDOW,
        work::CONSUMERS,
        work::CREDIT,
        how.rounds,
        grouped(how.rate as f64)
    );
    for peer in missing {
        let _ = write!(text, "\n{} is missing: its server isn't installed on this machine.\n", peer.name());
    }
    for class in [Class::Fsync, Class::Crash] {
        let ours = medians.iter().find(|(row, _)| row.class == class && row.peer == Peer::Eventflow);
        for tls in [false, true] {
            let rows = medians
                .iter()
                .filter(|(row, _)| row.class == class && (row.tls == tls || row.peer == Peer::Eventflow));
            let _ = write!(text, "\n### {}\n\n", title(class, tls));
            text += "| | publish/s | ours to it | published, consumed, acked/s | ours to it | p50 ms | p99 ms |\n";
            text += "|---|--:|--:|--:|--:|--:|--:|\n";
            for (row, run) in rows {
                let ratio = |part: fn(&Run) -> f64| match ours {
                    Some((_, ours)) if row.peer != Peer::Eventflow => {
                        format!("{:.2}", part(ours) / part(run))
                    }
                    _ => String::new(),
                };
                let _ = writeln!(
                    text,
                    "| {} | {} | {} | {} | {} | {:.2} | {:.2} |",
                    row.peer.name(),
                    grouped(run.publish),
                    ratio(|run| run.publish),
                    grouped(run.cycle),
                    ratio(|run| run.cycle),
                    run.p50,
                    run.p99
                );
            }
        }
    }
    text
}

fn title(class: Class, tls: bool) -> &'static str {
    match (class, tls) {
        (Class::Fsync, false) => "On disk before it is answered; ours with mutual TLS, the others without",
        (Class::Fsync, true) => "On disk before it is answered; all with mutual TLS",
        (Class::Crash, false) => "Survives a crash of the broker; ours with mutual TLS, the others without",
        (Class::Crash, true) => "Survives a crash of the broker; all with mutual TLS",
    }
}

/// `12,345`.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Puts the text between the markers of a page.
pub fn replace(page: &Path, text: &str) -> Result<(), Failure> {
    let old = fs::read_to_string(page)?;
    let (before, rest) = old.split_once(BEGIN).ok_or("the page has no marker where the tables begin")?;
    let (_, after) = rest.split_once(END).ok_or("the page has no marker where the tables end")?;
    fs::write(page, format!("{before}{BEGIN}\n{text}\n{END}{after}"))?;
    Ok(())
}

/// Processor, how many, memory, system.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches([':', ' ', '\t']).to_owned())
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let name = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let memory = memory.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0);
    format!(
        "{processors} x {name}, {} GiB, Linux {}, all programs on the same cores",
        memory / (1 << 20),
        read("/proc/sys/kernel/osrelease").trim()
    )
}
