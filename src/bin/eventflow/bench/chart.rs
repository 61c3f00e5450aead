//! Findings as a picture: the courses of a soak, else distributions of times, else rates.

use std::fmt::Display;

use eventflow::event::code;
use plotters::prelude::*;

use super::finding::{Finding, Times};
use crate::failure::Failure;

const SIZE: (u32, u32) = (900, 480);
const FONT: &str = "sans-serif";
/// Of names and numbers, in units of the drawing crate: a little less in pixels.
const LABEL: i32 = 16;
/// Points of a curve.
const STEPS: i32 = 200;
/// As far as a curve goes: that part of all which isn't within it, as a power of ten.
const NINES: f64 = 4.0;

/// The picture as SVG.
pub(super) fn draw(findings: &[&Finding], machine: &str) -> Result<String, Failure> {
    let courses: Vec<_> = findings.iter().flat_map(|finding| &finding.courses).collect();
    let times: Vec<_> = findings
        .iter()
        .flat_map(|finding| finding.times.iter().map(|(what, times)| (named(finding, what), times)))
        .collect();
    if !courses.is_empty() {
        let lines = courses.iter().map(|course| (course.what.clone(), course.points.clone())).collect();
        return plot(&Axes { title: machine, x: "seconds", y: "", log: false }, lines, |x| format!("{x:.0}"));
    }
    if !times.is_empty() {
        let lines = times.into_iter().map(|(name, times)| (name, curve(times))).collect();
        let axes = Axes { title: machine, x: "part of all within", y: "ms", log: true };
        return plot(&axes, lines, |x| percent(*x));
    }
    let bar = |(number, finding): (usize, &&Finding)| {
        let at = super::float(number);
        let points = vec![(at, 0.0), (at, finding.per_second)];
        (format!("{} {}", finding.bench, finding.how), points)
    };
    let lines = findings.iter().enumerate().map(bar).collect();
    plot(&Axes { title: machine, x: "", y: "per second", log: false }, lines, |_| String::new())
}

fn named(finding: &Finding, what: &str) -> String {
    format!("{} {}: {what}", finding.bench, finding.how)
}

/// The times over the part of all that is within them, in powers of ten from its end.
fn curve(times: &Times) -> Vec<(f64, f64)> {
    let point = |step| {
        let nines = NINES * f64::from(step) / f64::from(STEPS);
        (nines, times.at(1.0 - 10_f64.powf(-nines)).max(1e-3))
    };
    (0..=STEPS).map(point).collect()
}

/// `90%` at 1, `99.9%` at 3.
fn percent(nines: f64) -> String {
    let digits = (nines.round() as usize).saturating_sub(2);
    format!("{:.digits$}%", 100.0 - 10_f64.powf(2.0 - nines))
}

struct Axes<'a> {
    title: &'a str,
    x: &'a str,
    y: &'a str,
    log: bool,
}

type Line = (String, Vec<(f64, f64)>);

fn plot(axes: &Axes<'_>, lines: Vec<Line>, x_label: impl Fn(&f64) -> String) -> Result<String, Failure> {
    let mut svg = String::new();
    let points = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    let right = points().map(|(x, _)| x).fold(1.0, f64::max);
    let top = points().map(|(_, y)| y).fold(1e-3, f64::max) * 1.1;
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&root);
        chart.caption(axes.title, (FONT, 18)).margin(12).x_label_area_size(44).y_label_area_size(64);
        // The two scales are two types.
        if axes.log {
            let bottom = points().map(|(_, y)| y).fold(top, f64::min);
            let mut chart =
                chart.build_cartesian_2d(0.0..right, (bottom..top).log_scale()).map_err(failed)?;
            let mut mesh = chart.configure_mesh();
            mesh.x_desc(axes.x)
                .y_desc(axes.y)
                .x_labels(5)
                .x_label_formatter(&x_label)
                .label_style((FONT, LABEL));
            mesh.draw().map_err(failed)?;
            for (number, (name, points)) in lines.into_iter().enumerate() {
                let colour = Palette99::pick(number).to_rgba();
                let series = LineSeries::new(points, colour.stroke_width(2));
                chart
                    .draw_series(series)
                    .map_err(failed)?
                    .label(name)
                    .legend(move |(x, y)| key(x, y, colour));
            }
            let mut labels = chart.configure_series_labels();
            labels
                .position(SeriesLabelPosition::UpperLeft)
                .border_style(BLACK)
                .background_style(WHITE)
                .label_font((FONT, LABEL));
            labels.draw().map_err(failed)?;
        } else {
            let mut chart = chart.build_cartesian_2d(0.0..right, 0.0..top).map_err(failed)?;
            let mut mesh = chart.configure_mesh();
            mesh.x_desc(axes.x).y_desc(axes.y).x_label_formatter(&x_label).label_style((FONT, LABEL));
            mesh.draw().map_err(failed)?;
            for (number, (name, points)) in lines.into_iter().enumerate() {
                let colour = Palette99::pick(number).to_rgba();
                let series = LineSeries::new(points, colour.stroke_width(3));
                chart
                    .draw_series(series)
                    .map_err(failed)?
                    .label(name)
                    .legend(move |(x, y)| key(x, y, colour));
            }
            let mut labels = chart.configure_series_labels();
            labels
                .position(SeriesLabelPosition::LowerRight)
                .border_style(BLACK)
                .background_style(WHITE)
                .label_font((FONT, LABEL));
            labels.draw().map_err(failed)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

/// What stands beside a name in the legend.
fn key(x: i32, y: i32, colour: RGBAColor) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2))
}

fn failed(error: impl Display) -> Failure {
    Failure::new(code::INTERNAL, format!("the chart can't be drawn: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn parts_of_all_have_as_many_digits_as_they_need() {
        let labels = [0.0, 1.0, 2.0, 3.0, 4.0].map(percent);
        assert_eq!(labels, ["0%", "90%", "99%", "99.9%", "99.99%"]);
    }

    #[test]
    fn each_kind_of_finding_is_drawn() {
        let plain = Finding::new("storm", "10 clients".to_owned(), 10, Duration::from_secs(1));
        let mut times = Times::new();
        times.record(Duration::from_millis(2));
        let timed = plain.clone().timed("connect", times);
        let mut course = plain.clone();
        course
            .courses
            .push(super::super::finding::Course { what: "memory".into(), points: vec![(0.0, 1.0)] });
        for (finding, word) in [(&plain, "10 clients"), (&timed, "connect"), (&course, "memory")] {
            let svg = draw(&[finding], "a machine").unwrap();
            assert!(svg.starts_with("<svg") && svg.contains(word) && svg.contains("a machine"), "{svg}");
        }
    }
}
