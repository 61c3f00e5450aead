//! What a process of this machine takes: memory, descriptors, processor time. Linux tells; elsewhere nothing is known.

use std::{fs, time::Duration};

use tokio::time::Instant;

/// Ticks of the processor's clock a second, as `/proc` counts them on every Linux of today.
const TICKS: f64 = 100.0;
/// How long memory is waited for to come to rest, and how often it is looked at.
const REST: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(200);

/// A process to look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meter(u32);

impl Meter {
    pub(super) fn of(pid: u32) -> Self {
        Self(pid)
    }

    /// Resident memory in bytes.
    pub(super) fn memory(self) -> Option<u64> {
        let status = self.read("status")?;
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix("kB")?;
        Some(kib.trim().parse::<u64>().ok()? * 1_024)
    }

    /// Open descriptors.
    pub(super) fn descriptors(self) -> Option<u64> {
        Some(fs::read_dir(format!("/proc/{}/fd", self.0)).ok()?.count() as u64)
    }

    /// Seconds of processor that it used so far, itself and what the system did for it.
    pub(super) fn worked(self) -> Option<f64> {
        let stat = self.read("stat")?;
        // The name, in parentheses, may hold spaces; what follows doesn't. User and system are the 14th and 15th field.
        let (_, fields) = stat.rsplit_once(')')?;
        let ticks: f64 =
            fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        Some(ticks / TICKS)
    }

    /// Resident memory once it has come to rest, or after some seconds.
    pub(super) async fn memory_at_rest(self) -> Option<u64> {
        let began = Instant::now();
        let mut last = self.memory()?;
        loop {
            tokio::time::sleep(LOOK).await;
            let now = self.memory()?;
            if now.abs_diff(last) * 500 < last || began.elapsed() > REST {
                return Some(now);
            }
            last = now;
        }
    }

    fn read(self, file: &str) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/{file}", self.0)).ok()
    }
}

/// What machine this is: processor, how many of them, system.
pub(super) fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let named = read("/proc/cpuinfo");
    let name = named.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let name = name.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    let memory = read("/proc/meminfo");
    let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
    let memory = memory.and_then(|kib| kib.parse::<u64>().ok());
    let memory = memory.map_or_else(String::new, |kib| format!(", {}", crate::output::size(kib * 1_024)));
    let system = read("/proc/sys/kernel/osrelease");
    format!("{processors} x {name}{memory}, {} {}", std::env::consts::OS, system.trim()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn our_own_process_can_be_read() {
        let meter = Meter::of(std::process::id());
        assert!(meter.memory().unwrap() > 1 << 20);
        assert!(meter.descriptors().unwrap() >= 3);
        assert!(meter.worked().unwrap() < 1e6);
        assert!(machine().contains("linux"), "{}", machine());
        assert!(Meter::of(u32::MAX).memory().is_none());
    }
}
