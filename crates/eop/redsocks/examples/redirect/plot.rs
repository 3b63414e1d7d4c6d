//! Draws the tables as figures: a line for each file size, the number of clients to the right, latency upwards.

use std::fmt::Write as _;

use super::{CLIENTS, SIZES, Table};

const COLORS: [&str; 6] = [
    "#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#a6761d",
];

/// Prints bars for the largest number of clients; the longest has 50 columns.
pub fn ascii([http, eop]: &[Table; 2]) {
    let last = CLIENTS.len() - 1;
    let all = http.iter().chain(eop).map(|line| line[last]);
    let longest = all.fold(f64::MIN_POSITIVE, f64::max);
    for (kind, table) in [("HTTP", http), ("EOP ", eop)] {
        for (size, line) in SIZES.iter().zip(table) {
            let bar = "#".repeat((line[last] / longest * 50.0).round() as usize);
            println!("  {kind} {size:3} KiB {:8.3} ms |{bar}", line[last]);
        }
    }
    println!("  ({} clients)", CLIENTS[last]);
}

/// Draws both tables on one scale.
pub fn svg(tables: &[Table; 2]) -> String {
    let most = tables.iter().flatten().flatten();
    let most = most.copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"330\" font-family=\"sans-serif\" \
         font-size=\"12\"><rect width=\"760\" height=\"330\" fill=\"white\"/>\n",
    );
    for (panel, (title, table)) in ["HTTP 307", "EOP"].iter().zip(tables).enumerate() {
        let left = 60.0 + 360.0 * panel as f64;
        let place = |count: usize, average: f64| {
            let x = left + 240.0 * count as f64 / (CLIENTS.len() - 1) as f64;
            (x, 280.0 - 230.0 * average / most)
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<text x=\"{left}\" y=\"25\" font-weight=\"bold\">{title}: server redirection latency, ms</text>\
             <path d=\"M{left} 45V280H{}\" fill=\"none\" stroke=\"black\"/>",
            left + 245.0
        );
        for tick in 0..=4 {
            let value = most * f64::from(tick) / 4.0;
            let (x, y) = place(0, value);
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{value:.1}</text>",
                x - 5.0,
                y + 4.0
            );
        }
        for (index, count) in CLIENTS.iter().enumerate() {
            let (x, _) = place(index, 0.0);
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"297\" text-anchor=\"middle\">{count}</text>"
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"315\">clients at once</text>",
            left + 80.0
        );
        for ((size, line), color) in SIZES.iter().zip(table).zip(COLORS) {
            let points: Vec<String> = line
                .iter()
                .enumerate()
                .map(|(count, &average)| {
                    let (x, y) = place(count, average);
                    format!("{x:.1},{y:.1}")
                })
                .collect();
            let (x, y) = place(CLIENTS.len() - 1, line[CLIENTS.len() - 1]);
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
                points.join(" ")
            );
            if panel == 0 {
                let _ = writeln!(
                    svg,
                    "<text x=\"{}\" y=\"{}\" fill=\"{color}\">{size} KiB</text>",
                    x + 6.0,
                    y + 4.0
                );
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}
