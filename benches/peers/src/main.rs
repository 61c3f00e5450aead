//! The same work for Eventflow and its peers on this machine, like durability beside like: `benches/peers/run`.
//!
//! Each run starts a server of its own on loopback with its data in a temporary folder, publishes, publishes and
//! consumes, publishes at a fixed rate and consumes, and ends the server. Runs of the brokers are interleaved, and
//! medians told. It ends with 1 if anything was lost or came twice.

mod broker;
mod certificates;
mod chart;
mod eventflow;
mod nats;
mod page;
mod rabbit;
mod redis_streams;
mod work;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Parser;
use tokio::{sync::oneshot, task::JoinSet, time::timeout};

use self::{
    broker::{Broker, Class, Setting, find},
    certificates::Certificates,
    work::{CONSUMERS, PUBLISHERS, Work},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whatever goes wrong is told, and ends the run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One part of a run takes no longer.
const PATIENCE: Duration = Duration::from_secs(300);

/// Measure Eventflow and its peers side by side.
#[derive(Debug, Parser)]
struct Arguments {
    /// Events of a run
    #[arg(long, default_value_t = 100_000)]
    events: usize,
    /// Runs of each broker
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Events per second of the runs that measure latency; 0: none
    #[arg(long, default_value_t = 1_000)]
    rate: usize,
    /// A few seconds, to see that it works
    #[arg(long)]
    short: bool,
    /// Only these: eventflow, nats, rabbitmq, redis
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The program of our hub
    #[arg(long)]
    hub: PathBuf,
    /// The page whose tables are replaced, between its markers
    #[arg(long)]
    page: Option<PathBuf>,
}

/// A broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    Eventflow,
    Nats,
    Rabbit,
    Redis,
}

impl Peer {
    const ALL: [Self; 4] = [Self::Eventflow, Self::Nats, Self::Rabbit, Self::Redis];

    pub fn name(self) -> &'static str {
        match self {
            Self::Eventflow => "Eventflow",
            Self::Nats => "NATS JetStream",
            Self::Rabbit => "RabbitMQ, quorum queue",
            Self::Redis => "Redis Streams",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Eventflow => "eventflow",
            Self::Nats => "nats",
            Self::Rabbit => "rabbitmq",
            Self::Redis => "redis",
        }
    }

    /// Its server's program, if it is installed.
    fn program(self, hub: &Path) -> Option<PathBuf> {
        match self {
            Self::Eventflow => Some(hub.to_owned()).filter(|path| path.is_file()),
            Self::Nats => find("nats-server"),
            Self::Rabbit => {
                let unwrapped = PathBuf::from("/usr/lib/rabbitmq/bin/rabbitmq-server");
                Some(unwrapped).filter(|path| path.is_file())
            }
            Self::Redis => find("redis-server"),
        }
    }

    async fn start(self, setting: &Setting, program: PathBuf) -> Result<Box<dyn Broker>, Failure> {
        match self {
            Self::Eventflow => eventflow::start(setting, program).await,
            Self::Nats => nats::start(setting, program).await,
            Self::Rabbit => rabbit::start(setting, program).await,
            Self::Redis => redis_streams::start(setting, program).await,
        }
    }
}

/// A row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub class: Class,
    /// Whether the peers have mutual TLS too; ours always has.
    pub tls: bool,
    pub peer: Peer,
}

/// What one run brought.
#[derive(Debug, Clone, Copy, Default)]
pub struct Run {
    /// Confirmed per second, nobody consumes.
    pub publish: f64,
    /// Published, consumed and acked per second.
    pub cycle: f64,
    /// Milliseconds from due to consumer at the rate, medians and 99 of 100.
    pub p50: f64,
    pub p99: f64,
}

#[tokio::main]
async fn main() -> ExitCode {
    match measure(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(mut arguments: Arguments) -> Result<(), Failure> {
    // Several of our dependencies use rustls, and one of them leaves the choice to the program.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if arguments.short {
        (arguments.events, arguments.rounds, arguments.rate) = (2_000, 1, arguments.rate.min(200));
    }
    let certificates = tempfile::tempdir()?;
    let made = Arc::new(Certificates::make(certificates.path())?);
    let wanted =
        |peer: &Peer| arguments.only.is_empty() || arguments.only.iter().any(|word| word == peer.word());
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for peer in Peer::ALL.into_iter().filter(wanted) {
        match peer.program(&arguments.hub) {
            Some(program) => there.push((peer, program)),
            None => missing.push(peer),
        }
    }
    for peer in &missing {
        println!("{}: its server isn't installed here, so it is left out", peer.name());
    }
    let rows = rows(&there);
    let mut results: Vec<Vec<Run>> = rows.iter().map(|_| Vec::new()).collect();
    for round in 0..arguments.rounds {
        for ((row, program), results) in rows.iter().zip(&mut results) {
            let run = run(row, program.clone(), &made, &arguments).await;
            let run = run
                .map_err(|error| format!("{}, {:?}, TLS {}: {error}", row.peer.name(), row.class, row.tls))?;
            println!(
                "{:>2}  {:<24} {:<6} TLS {:<5}  publish {:>8.0}/s  cycle {:>8.0}/s  p50 {:>7.2} ms  p99 {:>7.2} ms",
                round + 1,
                row.peer.name(),
                format!("{:?}", row.class),
                row.tls || row.peer == Peer::Eventflow,
                run.publish,
                run.cycle,
                run.p50,
                run.p99
            );
            results.push(run);
        }
    }
    let medians: Vec<_> = rows.iter().zip(&results).map(|((row, _), runs)| (*row, median(runs))).collect();
    let text = page::tables(&medians, &missing, &arguments_of(&arguments));
    println!("\n{text}");
    if let Some(page) = &arguments.page {
        page::replace(page, &text)?;
        chart::draw(&medians, page.parent().unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// What a table says of how it was made.
pub struct How {
    pub events: usize,
    pub rounds: usize,
    pub rate: usize,
}

fn arguments_of(arguments: &Arguments) -> How {
    How { events: arguments.events, rounds: arguments.rounds, rate: arguments.rate }
}

/// Ours once in each class: it always has TLS.
fn rows(there: &[(Peer, PathBuf)]) -> Vec<(Row, PathBuf)> {
    let mut rows = Vec::new();
    for class in [Class::Fsync, Class::Crash] {
        for tls in [false, true] {
            for (peer, program) in there {
                let twice = *peer == Peer::Eventflow && tls;
                let no_such_class = *peer == Peer::Rabbit && class == Class::Crash;
                if !twice && !no_such_class {
                    rows.push((Row { class, tls, peer: *peer }, program.clone()));
                }
            }
        }
    }
    rows
}

async fn run(
    row: &Row,
    program: PathBuf,
    certificates: &Arc<Certificates>,
    arguments: &Arguments,
) -> Result<Run, Failure> {
    let mut run = Run::default();
    // Each part on a server of its own: what one leaves behind doesn't burden the next.
    let mut parts = vec![(arguments.events, None, false), (arguments.events, None, true)];
    if arguments.rate > 0 {
        let seconds = if arguments.short { 1 } else { 10 };
        parts.push((arguments.rate * seconds, Some(arguments.rate as f64), true));
    }
    for (events, rate, consumed) in parts {
        let folder = tempfile::tempdir()?;
        let setting = Setting {
            class: row.class,
            tls: row.tls,
            folder: folder.path().to_owned(),
            certificates: certificates.clone(),
        };
        let mut broker: Arc<dyn Broker> = Arc::from(row.peer.start(&setting, program.clone()).await?);
        let work = Work::new(events, rate)?;
        let took = timeout(PATIENCE, part(&broker, &work, consumed)).await;
        // All tasks that had it have ended; in any case it ends when it is dropped.
        if let Some(broker) = Arc::get_mut(&mut broker) {
            broker.end().await;
        }
        let took = took.map_err(|_| "it takes too long")??;
        if let Some(wrong) = work.wrong(consumed) {
            return Err(wrong.into());
        }
        let per_second = events as f64 / took.as_secs_f64();
        match (rate, consumed) {
            (Some(_), _) => (run.p50, run.p99) = (work.wait_ms(0.5), work.wait_ms(0.99)),
            (None, false) => run.publish = per_second,
            (None, true) => run.cycle = per_second,
        }
    }
    Ok(run)
}

async fn part(broker: &Arc<dyn Broker>, work: &Arc<Work>, consumed: bool) -> Result<Duration, Failure> {
    let mut tasks = JoinSet::new();
    let mut consumers = JoinSet::new();
    for _ in 0..if consumed { CONSUMERS } else { 0 } {
        let (ready, is_ready) = oneshot::channel();
        let (broker, work) = (broker.clone(), work.clone());
        consumers.spawn(async move { broker.consume(work, ready).await });
        if is_ready.await.is_err() {
            let ended = consumers.join_next().await.ok_or("no consumer")?;
            ended??;
        }
    }
    for publisher in 0..PUBLISHERS {
        let (broker, work) = (broker.clone(), work.clone());
        tasks.spawn(async move { broker.publish(publisher, work).await });
    }
    let publishing = async {
        tokio::select! {
            () = work.begin() => {}
            // One that can't connect.
            Some(done) = tasks.join_next() => done??,
        }
        let began = Instant::now();
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        if consumed {
            work.all_acked().await;
        }
        Ok::<_, Failure>(began.elapsed())
    };
    let took = tokio::select! {
        took = publishing => took,
        Some(ended) = consumers.join_next() => match ended? {
            Ok(()) => Err("a consumer ended before its time".into()),
            Err(error) => Err(error),
        },
    };
    consumers.shutdown().await;
    took
}

fn median(runs: &[Run]) -> Run {
    let of = |part: fn(&Run) -> f64| {
        let mut values: Vec<_> = runs.iter().map(part).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    Run {
        publish: of(|run| run.publish),
        cycle: of(|run| run.cycle),
        p50: of(|run| run.p50),
        p99: of(|run| run.p99),
    }
}
