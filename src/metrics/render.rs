//! The numbers as OpenMetrics text, for Prometheus and what speaks its language.

use std::fmt::Error;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue, MetricEncoder, NoLabelSet, text},
    metrics::{MetricType, exemplar::Exemplar},
    registry::{Registry, Unit},
};

use super::{
    Metrics, Numbers,
    instrument::{Counter, Gauge, Histogram},
    label::{ActorKind, Counters, Gauges, Label},
    meter::ActorNumbers,
    names::{self, Definition, Kind},
    snapshot::at_least_zero,
};

/// The content type of [`Metrics::render`].
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The content type of [`Metrics::render_plain`].
pub const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Metrics {
    /// The numbers as OpenMetrics 1.0 text; its type is [`OPENMETRICS`].
    #[must_use]
    pub fn render(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Renderer(self.0.clone())));
        let mut text = String::new();
        // Writing to a String can't fail, and nothing in the renderer fails of itself.
        if let Err(error) = text::encode(&mut text, &registry) {
            tracing::error!(%error, "the metrics could not be written");
        }
        text
    }

    /// The numbers in Prometheus' older text format 0.0.4; its type is [`PLAIN`]. There a counter's HELP and
    /// TYPE bear the name of its series, `_total` included, and neither UNIT nor EOF is known.
    #[must_use]
    pub fn render_plain(&self) -> String {
        let lines = self.render();
        let lines = lines.lines().filter(|line| !line.starts_with("# UNIT ") && *line != "# EOF");
        lines.map(plain_line).collect()
    }
}

fn plain_line(line: &str) -> String {
    let header = ["# HELP ", "# TYPE "].iter().find_map(|start| Some((start, line.strip_prefix(start)?)));
    if let Some((start, (name, rest))) = header.and_then(|(start, rest)| Some((start, rest.split_once(' ')?)))
        && names::ALL.iter().any(|definition| definition.kind == Kind::Counter && definition.family() == name)
    {
        return format!("{start}{name}_total {rest}\n");
    }
    format!("{line}\n")
}

#[derive(Debug)]
struct Renderer(std::sync::Arc<Numbers>);

impl Collector for Renderer {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), Error> {
        let mut out = Writer(&mut encoder);
        self.actors(&mut out)?;
        self.events(&mut out)?;
        self.links(&mut out)?;
        self.journal(&mut out)?;
        self.certificates(&mut out)?;
        out.gauges(names::READINESS, &self.0.hub.readiness)
    }
}

impl Renderer {
    fn actors(&self, out: &mut Writer) -> Result<(), Error> {
        out.per_actor(names::ACTORS, self, |out, actor| gauge(out, at_least_zero(actor.alive.get())))?;
        out.per_actor(names::RESTARTS, self, |out, actor| counter(out, &actor.restarts))?;
        out.per_actor(names::DEPTH, self, |out, actor| gauge(out, at_least_zero(actor.depth.get())))?;
        out.per_actor(names::DEPTH_PEAK, self, |out, actor| {
            gauge(out, at_least_zero(actor.depth_peak.get()))
        })?;
        out.per_actor(names::WAITED, self, |out, actor| histogram(out, &actor.waited))?;
        out.per_actor(names::HANDLING, self, |out, actor| histogram(out, &actor.handling))?;
        out.metric(names::MESSAGES, |out| {
            for &kind in ActorKind::ALL {
                for (message, handled) in self.0.actors[kind.index()].messages() {
                    let labels = [("actor", kind.as_str()), ("message", message)];
                    count(&mut out.encode_family(&labels)?, handled)?;
                }
            }
            Ok(())
        })?;
        out.per_actor(names::ACTOR_REFUSED, self, |out, actor| counter(out, &actor.refused))?;
        out.per_actor(names::PROGRESS, self, |out, actor| match actor.last_progress() {
            Some(at) => gauge(out, at as f64 / 1e3),
            None => Ok(()),
        })
    }

    fn events(&self, out: &mut Writer) -> Result<(), Error> {
        let hub = &self.0.hub;
        out.counter(names::PUBLISHED, &hub.published)?;
        out.counter(names::DUPLICATES, &hub.duplicates)?;
        out.counter(names::PERSISTED, &hub.persisted)?;
        out.counter(names::DELETED, &hub.deleted)?;
        out.counters(names::REMOVED, &hub.removed)?;
        out.gauge(names::RETENTION, &hub.retention_pass)?;
        out.counters(names::REFUSED, &hub.refused)?;
        out.counter(names::DELIVERED, &hub.delivered)?;
        out.counter(names::REPLAYED, &hub.replayed)?;
        out.gauge(names::REPLAYS, &hub.replays)?;
        out.counter(names::CLAIMS, &hub.claims)?;
        out.counter(names::ACKS, &hub.acks)?;
        out.counter(names::NACKS, &hub.nacks)?;
        out.counter(names::RELEASED, &hub.released)?;
        out.counter(names::REOFFERED, &hub.reoffered)?;
        out.counter(names::LEASES_OVER, &hub.leases_over)?;
        out.counter(names::EXTENDS, &hub.extends)?;
        out.counter(names::LETTERS, &hub.letters)?;
        out.counter(names::RETRIES, &hub.retries)?;
        out.counter(names::CLAIMS_LOST, &hub.claims_lost)?;
        out.counters(names::OUTCOMES, &hub.outcomes)?;
        out.counter(names::ORPHANS, &hub.orphans)?;
        out.gauge(names::PENDING, &hub.pending)?;
        out.gauge(names::OLDEST_PENDING, &hub.oldest_pending)?;
        out.gauges(names::RETRYING, &hub.retrying)?;
        out.gauges(names::DEAD, &hub.dead)?;
        out.gauge(names::ORPHANS_WAITING, &hub.orphans_waiting)?;
        out.gauge(names::WINDOWS, &hub.windows)?;
        out.counter(names::WINDOWS_REFUSED, &hub.windows_refused)?;
        out.gauge(names::IN_FLIGHT, &hub.in_flight)?;
        out.gauge(names::SCHEDULES, &hub.schedules_waiting)?;
        out.counter(names::SCHEDULES_EXECUTED, &hub.schedules_executed)?;
        out.counter(names::COLLECTED, &hub.collected)?;
        out.counter(names::COLLECT_REFUSED, &hub.collect_refused)?;
        out.counter(names::ADOPTED, &hub.adopted)?;
        out.gauge(names::ADOPTED_HUBS, &hub.adopted_hubs)?;
        out.metric(names::LATENESS, |out| histogram(out, &hub.schedule_lateness))?;
        out.counter(names::RECURRING_RUNS, &hub.recurring_runs)?;
        out.counter(names::RECURRING_MISSED, &hub.recurring_missed)?;
        out.counter(names::RECURRING_LEFT_OUT, &hub.recurring_left_out)?;
        out.metric(names::CLOCK_SKEW, |out| gauge(out, hub.clock_skew.get() as f64 / 1e3))?;
        out.gauge(names::WAITS, &hub.waits)
    }

    fn links(&self, out: &mut Writer) -> Result<(), Error> {
        let hub = &self.0.hub;
        out.gauges(names::LINKS, &hub.links)?;
        out.counters(names::LINKS_OPENED, &hub.links_opened)?;
        out.counters(names::CUTS, &hub.cuts)?;
        out.counters(names::HANDSHAKES_FAILED, &hub.handshakes_failed)?;
        out.counter(names::BYTES_IN, &hub.bytes_in)?;
        out.counter(names::BYTES_OUT, &hub.bytes_out)?;
        out.counter(names::NPM_IGNORED, &hub.npm_ignored)
    }

    fn journal(&self, out: &mut Writer) -> Result<(), Error> {
        let hub = &self.0.hub;
        out.counter(names::BATCHES, &hub.batches)?;
        out.metric(names::BATCH_SIZE, |out| histogram(out, &hub.batch_size))?;
        out.metric(names::COMMIT_TIME, |out| histogram(out, &hub.commit_time))?;
        out.gauge(names::QUEUE, &hub.journal_queue)?;
        out.gauge(names::QUEUE_BYTES, &hub.journal_queue_bytes)?;
        out.gauge(names::SYNCHRONOUS, &hub.synchronous)?;
        out.counter(names::LOG_DROPPED, &hub.log_dropped)
    }

    fn certificates(&self, out: &mut Writer) -> Result<(), Error> {
        let hub = &self.0.hub;
        out.gauge(names::LEAF_LEFT, &hub.leaf_left)?;
        out.counter(names::RENEWALS_FAILED, &hub.renewals_failed)?;
        out.counter(names::LEAVES_ISSUED, &hub.leaves_issued)
    }
}

/// Writes one metric after the other, each with its HELP, TYPE and UNIT.
struct Writer<'a, 'e>(&'a mut DescriptorEncoder<'e>);

impl Writer<'_, '_> {
    fn metric(
        &mut self,
        definition: Definition,
        write: impl FnOnce(&mut MetricEncoder) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let kind = match definition.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        let unit = definition.unit.map(|unit| Unit::Other(unit.to_owned()));
        write(&mut self.0.encode_descriptor(definition.name, definition.help, unit.as_ref(), kind)?)
    }

    fn counter(&mut self, definition: Definition, value: &Counter) -> Result<(), Error> {
        self.metric(definition, |out| counter(out, value))
    }

    fn gauge(&mut self, definition: Definition, value: &Gauge) -> Result<(), Error> {
        self.metric(definition, |out| gauge(out, value.get()))
    }

    fn counters<L: Label>(&mut self, definition: Definition, values: &Counters<L>) -> Result<(), Error> {
        self.per_label::<L>(definition, |out, label| counter(out, values.of(label)))
    }

    fn gauges<L: Label>(&mut self, definition: Definition, values: &Gauges<L>) -> Result<(), Error> {
        self.per_label::<L>(definition, |out, label| gauge(out, values.of(label).get()))
    }

    fn per_actor(
        &mut self,
        definition: Definition,
        from: &Renderer,
        write: impl Fn(&mut MetricEncoder, &ActorNumbers) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.per_label::<ActorKind>(definition, |out, kind| write(out, &from.0.actors[kind.index()]))
    }

    fn per_label<L: Label>(
        &mut self,
        definition: Definition,
        write: impl Fn(&mut MetricEncoder, L) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.metric(definition, |out| {
            for &label in L::ALL {
                let labels = [(definition.label.unwrap_or("of"), label.as_str())];
                write(&mut out.encode_family(&labels)?, label)?;
            }
            Ok(())
        })
    }
}

fn counter(out: &mut MetricEncoder, value: &Counter) -> Result<(), Error> {
    count(out, value.get())
}

fn count(out: &mut MetricEncoder, value: u64) -> Result<(), Error> {
    out.encode_counter(&value, None::<&Exemplar<NoLabelSet, u64>>)
}

fn gauge(out: &mut MetricEncoder, value: impl EncodeGaugeValue) -> Result<(), Error> {
    out.encode_gauge(&value)
}

fn histogram(out: &mut MetricEncoder, value: &Histogram) -> Result<(), Error> {
    let reading = value.read();
    out.encode_histogram::<NoLabelSet>(reading.sum(), reading.count(), &reading.buckets(), None)
}
