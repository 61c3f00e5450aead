//! Runs the hub until a signal stops it.

use std::{path::Path, process::ExitCode};

use eventflow::{
    config::{HubConfig, LogFormat, show_duration},
    event::code,
    hub::{Hub, HubHandle},
};

use crate::{banner, exit, logging::Control, print, signals::Signals};

/// Starts the hub, says so, waits for a signal, drains.
pub(crate) fn run(config: HubConfig, log: Option<Control>) -> ExitCode {
    // The hub has threads of its own; this one only waits for signals.
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(serve(config, log)),
        Err(error) => exit::failed(code::INTERNAL, &format!("the program can't wait for signals: {error}")),
    }
}

async fn serve(config: HubConfig, log: Option<Control>) -> ExitCode {
    // From here on: a signal that comes during the start stops the hub as soon as it is up.
    let mut signals = match Signals::listen(config.hub.signal_quit) {
        Ok(signals) => signals,
        Err(error) => {
            return exit::failed(code::INTERNAL, &format!("the program can't listen to signals: {error}"));
        }
    };
    let drain = show_duration(config.limits.drain);
    let for_people = config.log.format == LogFormat::Human;
    let is_default_folder = config.data == HubConfig::default().data;
    let mut builder = Hub::builder().config(config);
    if let Some(log) = log {
        builder = builder.log_control(log);
    }
    let mut hub = match builder.start().await {
        Ok(hub) => hub,
        Err(error) => return exit::failed(error.code(), &error.to_string()),
    };
    tell(&hub, is_default_folder, for_people);
    tokio::select! {
        signal = signals.next() => tracing::info!(
            "{signal}: the hub stops (waits up to {drain} for claims in hand; again: at once)"
        ),
        ended = hub.end() => {
            return match ended {
                Ok(_) => ExitCode::SUCCESS,
                Err(error) => exit::failed(error.code(), &error.to_string()),
            };
        }
    }
    tokio::select! {
        outcome = hub.shutdown() => match outcome {
            // The hub's log has said what was clean and what was forced.
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => exit::failed(error.code(), &error.to_string()),
        },
        signal = signals.next() => {
            tracing::warn!("{signal} again: the hub ends at once; nothing that was acknowledged is lost");
            ExitCode::from(130)
        }
    }
}

fn tell(hub: &HubHandle, is_default_folder: bool, for_people: bool) {
    let info = hub.info();
    let client = banner::client(
        &std::env::current_exe().unwrap_or_default(),
        &std::env::current_dir().unwrap_or_default(),
        std::env::var_os("PATH").as_deref(),
        // cargo sets it for what it runs.
        std::env::var_os("CARGO").is_some(),
        Path::exists,
    );
    print(&banner::ready(&banner::Ready {
        id: &info.id,
        address: info.address,
        data: info.data.as_deref().unwrap_or(Path::new("")),
        is_default_folder,
        fingerprint: &info.fingerprint,
        admin: info.admin,
        // A log for programs is read by programs.
        client: for_people.then_some(client.as_str()),
    }));
    tracing::info!(hub.id = info.id, address = %info.address, "ready");
}
