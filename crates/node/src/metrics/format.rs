//! The two formats in which metrics are read: OpenMetrics, which Prometheus asks for, and the older text format, which
//! everybody reads. A client that does not ask for OpenMetrics gets the text format.

use axum::http::HeaderMap;

/// How the metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `application/openmetrics-text`, 1.0.0.
    OpenMetrics,
    /// `text/plain`, 0.0.4.
    Text,
}

impl Format {
    /// The format that these request headers prefer (RFC 9110, 12.5.1).
    pub fn of(headers: &HeaderMap) -> Self {
        let (mut open, mut text) = (0.0, 0.0);
        for value in headers.get_all("accept") {
            for range in value.to_str().unwrap_or_default().split(',') {
                let mut parts = range.split(';').map(str::trim);
                let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
                let weight = parts.find_map(|part| part.strip_prefix("q="));
                let weight = weight.map_or(1.0, |q| q.parse::<f32>().unwrap_or(0.0));
                match kind.as_str() {
                    "application/openmetrics-text" => open = weight.max(open),
                    "text/plain" | "text/*" | "*/*" => text = weight.max(text),
                    _ => {}
                }
            }
        }
        if open > 0.0 && open >= text {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// The value of Content-Type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Turns a text in OpenMetrics into this format.
    pub fn write(self, open_metrics: String) -> String {
        match self {
            Self::OpenMetrics => open_metrics,
            Self::Text => as_text(&open_metrics),
        }
    }
}

/// Turns OpenMetrics into the text format. That has fewer types, no units and no end mark, and its comments name each
/// metric as the samples do.
fn as_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            text.extend([line, "\n"]);
            continue;
        };
        if let Some(said) = comment.strip_prefix("HELP ") {
            help = said;
        } else if let Some((name, kind)) =
            (comment.strip_prefix("TYPE ")).and_then(|said| said.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "gauge" | "histogram" | "summary" => ("", kind),
                _ => ("", "untyped"),
            };
            if let Some(help) = help.strip_prefix(name) {
                text.extend(["# HELP ", name, suffix, help, "\n"]);
            }
            text.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn who_asks_for_open_metrics_gets_it_and_all_others_text() {
        let preferred = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("accept", HeaderValue::from_static(accept));
            Format::of(&headers)
        };
        for accept in [
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5,*/*;q=0.1",
            "Application/OpenMetrics-Text; q=0.5 , text/plain ; q=0.5",
        ] {
            assert_eq!(preferred(accept), Format::OpenMetrics, "{accept}");
        }
        for accept in [
            "text/plain;version=0.0.4;q=0.5,text/plain;q=0.3",
            "*/*",
            "text/plain, application/openmetrics-text;q=0.9",
            "application/openmetrics-text;q=0",
            "application/json",
            "",
        ] {
            assert_eq!(preferred(accept), Format::Text, "{accept}");
        }
        assert_eq!(Format::of(&HeaderMap::new()), Format::Text);
    }

    #[test]
    fn names_and_types_are_those_that_the_text_format_has() {
        let open_metrics = "# HELP baton_packets What happened.\n\
                            # TYPE baton_packets counter\n\
                            baton_packets_total{name=\"a\"} 1\n\
                            # HELP baton_build Which build.\n\
                            # TYPE baton_build info\n\
                            baton_build_info{version=\"1\"} 1\n\
                            # HELP baton_age_seconds How old.\n\
                            # TYPE baton_age_seconds gauge\n\
                            # UNIT baton_age_seconds seconds\n\
                            baton_age_seconds 2\n\
                            # TYPE baton_x unknown\n\
                            baton_x 3\n\
                            # EOF\n";
        let text = "# HELP baton_packets_total What happened.\n\
                    # TYPE baton_packets_total counter\n\
                    baton_packets_total{name=\"a\"} 1\n\
                    # HELP baton_build_info Which build.\n\
                    # TYPE baton_build_info gauge\n\
                    baton_build_info{version=\"1\"} 1\n\
                    # HELP baton_age_seconds How old.\n\
                    # TYPE baton_age_seconds gauge\n\
                    baton_age_seconds 2\n\
                    # TYPE baton_x untyped\n\
                    baton_x 3\n";
        assert_eq!(Format::Text.write(open_metrics.to_owned()), text);
        assert_eq!(
            Format::OpenMetrics.write(open_metrics.to_owned()),
            open_metrics
        );
    }
}
