//! Bars for what is published, consumed and acked a second, one picture for each class.

use std::path::Path;

use plotters::prelude::*;

use crate::{Failure, Peer, Row, Run, broker::Class};

const WIDTH: u32 = 860;
const BAR: u32 = 34;
const TOP: u32 = 46;
const LEFT: i32 = 230;
const RIGHT: i32 = 90;

/// Draws `performance-fsync.svg` and `performance-crash.svg` into the folder.
pub fn draw(medians: &[(Row, Run)], folder: &Path) -> Result<(), Failure> {
    for (class, file, title) in [
        (
            Class::Fsync,
            "performance-fsync.svg",
            "published, consumed and acked a second; on disk before the answer",
        ),
        (Class::Crash, "performance-crash.svg", "published, consumed and acked a second; survives a crash"),
    ] {
        let rows: Vec<_> = medians.iter().filter(|(row, _)| row.class == class).collect();
        if !rows.is_empty() {
            bars(&rows, &folder.join(file), title)?;
        }
    }
    Ok(())
}

fn bars(rows: &[&(Row, Run)], file: &Path, title: &str) -> Result<(), Failure> {
    let most = rows.iter().map(|(_, run)| run.cycle).fold(1.0, f64::max);
    let height = TOP + BAR * u32::try_from(rows.len())? + 12;
    let root = SVGBackend::new(file, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    root.draw(&Text::new(title, (12, 14), ("sans-serif", 17)))?;
    let room = f64::from(i32::try_from(WIDTH)? - LEFT - RIGHT);
    for (at, (row, run)) in rows.iter().enumerate() {
        let ours = row.peer == Peer::Eventflow;
        let top = i32::try_from(TOP + BAR * u32::try_from(at)?)?;
        let end = LEFT + (room * run.cycle / most) as i32;
        let tls = if ours || row.tls { "mutual TLS" } else { "no TLS" };
        let colour = if ours { RGBColor(38, 110, 200) } else { RGBColor(150, 158, 168) };
        root.draw(&Text::new(format!("{}, {tls}", row.peer.name()), (12, top + 7), ("sans-serif", 14)))?;
        root.draw(&Rectangle::new([(LEFT, top + 3), (end, top + 27)], colour.filled()))?;
        root.draw(&Text::new(format!("{:.0}", run.cycle), (end + 8, top + 7), ("sans-serif", 14)))?;
    }
    root.present()?;
    Ok(())
}
